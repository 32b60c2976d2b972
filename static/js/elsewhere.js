// What a list, as filtered and paged, does not show: news of it may bring it into the list, so the list is
// fetched again; the longer that brings nothing, the more rarely.

const SHORTEST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 10_000;

export class Elsewhere {
  #told = new Map();
  #asked = new Set();
  #pause = SHORTEST_PAUSE_MS;

  /** So long after a list was fetched it may be fetched again for this. */
  get pause() {
    return this.#pause;
  }

  /** Whether a list may have to show this now: the same state again changes no list. */
  isNews({ resource, status, revision }) {
    const state = `${status} ${revision}`;
    const isNews = this.#told.get(resource) !== state;
    this.#told.set(resource, state);
    if (isNews) {
      this.#asked.add(resource);
    }
    return isNews;
  }

  /** A list was drawn: `isShown(resource)` says whether it brought what it was fetched for. */
  drawn(isShown) {
    if (this.#asked.size > 0) {
      const brought = [...this.#asked].some(isShown);
      this.#pause = brought ? SHORTEST_PAUSE_MS : Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
      this.#asked.clear();
    }
  }

  forget(resource) {
    this.#told.delete(resource);
  }
}
