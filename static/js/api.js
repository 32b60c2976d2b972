// The REST API as the pages use it: JSON with the session cookie and the CSRF token.

export class ApiError extends Error {
  constructor(status, body) {
    super(body.message || "The server gave no reason.");
    this.status = status;
    this.code = body.code || "error";
    this.fields = body.fields || {};
    this.body = body;
  }
}

const TRIES = 4;
const BETWEEN_TRIES_MS = 200;

/** `safe`: changes nothing, so it may be sent again when the connection breaks. */
export async function send(method, path, body, { headers = {}, safe = method === "GET" } = {}) {
  const response = await reach(path, safe, {
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
  const response = await reach(path, true, { credentials: "same-origin" });
  // A page, unlike the API, answers whoever signed out elsewhere with the way to the sign-in.
  if (response.redirected) {
    throw new ApiError(401, { message: "You are signed out. Reload the page to sign in." });
  }
  if (!response.ok) {
    throw new ApiError(response.status, await failure(response));
  }
  return response;
}

/** A container's start on this very machine changes its network, which makes browsers drop requests. */
async function reach(path, safe, options) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await fetch(path, options);
    } catch {
      if (!safe || tries === TRIES) {
        throw new ApiError(0, {
          message: "The server does not answer. Check your connection and try again.",
        });
      }
    }
    await new Promise((resolve) => {
      setTimeout(resolve, BETWEEN_TRIES_MS * tries);
    });
  }
}

async function failure(response) {
  try {
    return await response.json();
  } catch {
    return { message: `The server answered ${response.status} without a reason. Try again.` };
  }
}
