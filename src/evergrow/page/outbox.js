/** The outbox of this page: everything that is taught goes through it. */

import { newKey, teach } from "./api.js";
import { connection } from "./connection.js";
import { OutboxQueue } from "./outbox_queue.js";
import * as store from "./pending_store.js";

export const outbox = new OutboxQueue({ teach, newKey, connection, store });
