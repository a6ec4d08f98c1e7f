/** Errors of requests to the service. */

const FAILURES = [500, 502, 504];

/** The service refused a request; the message says why. */
export class Problem extends Error {
  /** @param {string|null} label the class that already has a picture, if that is why */
  constructor(status, message, { retryAfter = null, label = null } = {}) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
    this.label = label;
  }

  /** Whether the same request may succeed later. */
  get temporary() {
    return this.status >= 500 || this.status === 429 || this.status === 408;
  }

  /** Whether the service, or a proxy, failed although the request may have been carried out. */
  get uncertain() {
    return FAILURES.includes(this.status);
  }
}

/** No response came. */
export class Unreachable extends Error {
  constructor() {
    super("The service cannot be reached.");
  }

  get temporary() {
    return true;
  }

  get uncertain() {
    return true;
  }
}

/** Throws any other error again: it is a bug of this page. */
export function expectProblem(error) {
  if (!(error instanceof Problem) && !(error instanceof Unreachable)) throw error;
}
