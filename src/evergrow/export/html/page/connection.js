/** This page needs no service: it is never offline. */

export const connection = Object.assign(new EventTarget(), { online: true });
