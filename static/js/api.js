// The REST API as the pages use it: JSON with the session cookie and the CSRF token.

export class ApiError extends Error {
  constructor(status, body) {
    super(body.message || "The server gave no reason.");
    this.status = status;
    this.code = body.code || "error";
    this.fields = body.fields || {};
  }
}

export async function send(method, path, body, headers = {}) {
  const response = await reach(path, {
    method,
    credentials: "same-origin",
    headers: {
      Accept: "application/json",
      "X-CSRFToken": document.querySelector('meta[name="csrf-token"]').content,
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!response.ok) {
    throw new ApiError(response.status, await failure(response));
  }
  return response.status === 204 ? null : response.json().catch(() => null);
}

/** For answers that are not JSON, such as logs. */
export async function read(path) {
  const response = await reach(path, { credentials: "same-origin" });
  if (!response.ok) {
    throw new ApiError(response.status, await failure(response));
  }
  return response;
}

async function reach(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new ApiError(0, { message: "The server does not answer. Check your connection and try again." });
  }
}

async function failure(response) {
  try {
    return await response.json();
  } catch {
    return { message: `The server answered ${response.status} without a reason. Try again.` };
  }
}
