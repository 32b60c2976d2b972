// The session of a terminal, kept over a reload of its page.

export function remember(key, value) {
  try {
    sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Without storage the session ends with the page.
  }
}

/** What was kept; it is good for one time. */
export function recall(key) {
  try {
    const text = sessionStorage.getItem(key);
    sessionStorage.removeItem(key);
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
