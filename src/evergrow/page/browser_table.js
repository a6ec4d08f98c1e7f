/** A table that the browser stores (IndexedDB). A browser may refuse: then the calls are rejected. */
export class BrowserTable {
  #opened = null;

  constructor(database, name, keyPath) {
    this.database = database;
    this.name = name;
    this.keyPath = keyPath;
  }

  #open() {
    this.#opened ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(this.database, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(this.name, { keyPath: this.keyPath });
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    return this.#opened;
  }

  /** Does some work in one transaction; resolves to the result of the request that the work returns. */
  async transact(mode, work) {
    const database = await this.#open();
    return new Promise((resolve, reject) => {
      const transaction = database.transaction(this.name, mode);
      const request = work(transaction.objectStore(this.name));
      transaction.oncomplete = () => resolve(request?.result);
      transaction.onerror = () => reject(transaction.error);
      transaction.onabort = () => reject(transaction.error);
    });
  }
}
