/** This page needs no token. */

export const token = Object.assign(new EventTarget(), { value: "" });
