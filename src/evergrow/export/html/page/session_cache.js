/** This page is its own state: there is nothing to keep for a time without a service. */

export const save = () => {};
export const load = () => null;
export const clear = () => {};
