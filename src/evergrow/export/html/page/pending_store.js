/** Pictures wait for moments here, until the model has learnt them; what it learnt is stored by lesson_store.js. */

export const put = async () => true;
export const remove = async () => {};
export const has = async () => true;
export const list = async () => [];
export const withLock = (key, work) => work();
