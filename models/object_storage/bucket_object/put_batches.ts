// Writes of one bucket wait for each other: the usage is exact, so its row is locked until the commit is on the disk.
// What waits meanwhile is written together, in one transaction: with many writers, a commit is shared by all of them.
import type { Sql, Statement } from '../../../core/context';
import { ObjectRefused, type NewObject, type Refusal, type StoredObject } from '../../../core/protocols/objects';
import { named } from '../../../db/statement';
import { newVersionId } from './version_id';

const BATCH_MAX = 64;
/** SQLSTATE classes of values that do not fit: of one object, not of its neighbours. */
const VALUE_ERROR = /^(22|23|54)/;
/** The code of refuse_bucket_write. */
export const REFUSED = 'PS300';

type Put = (bucketId: string, object: NewObject) => Promise<StoredObject>;

interface Parts {
  sql: Sql;
  projectLimit: number | null;
}

interface Waiting {
  object: NewObject;
  resolve(stored: StoredObject): void;
  reject(error: unknown): void;
}

/** @param putOne writes one object in a separate transaction @param columns of an object */
export function batchedPuts({ columns, ...parts }: Parts & { columns: string }, putOne: Put): Put {
  const fields = columns.split(',').map((column) => `(p.object).${column.trim()}`);
  const statement = named(`select p.refusal, ${fields.join(', ')} from put_bucket_objects($1, $2, $3) p`);
  const queues = new Map<string, Waiting[]>();
  const run = async (bucketId: string, queue: Waiting[]): Promise<void> => {
    while (queue.length > 0) {
      const batch = queue.splice(0, BATCH_MAX);
      await (batch.length === 1
        ? putEach(putOne, bucketId, batch)
        : putTogether({ ...parts, statement, putOne }, bucketId, batch));
    }
    queues.delete(bucketId);
  };
  return (bucketId, object) =>
    new Promise((resolve, reject) => {
      const queue = queues.get(bucketId);
      if (queue) return void queue.push({ object, resolve, reject });
      const first = [{ object, resolve, reject }];
      queues.set(bucketId, first);
      void run(bucketId, first);
    });
}

async function putTogether(
  { sql, projectLimit, statement, putOne }: Parts & { statement: Statement; putOne: Put },
  bucketId: string,
  batch: Waiting[],
): Promise<void> {
  const objects = batch.map(({ object }) => ({ ...object, version_id: newVersionId() }));
  try {
    const values = [bucketId, JSON.stringify(objects), projectLimit];
    const rows = await sql.query<StoredObject & { refusal: Refusal | null }>(statement, values);
    for (const [index, { resolve, reject }] of batch.entries()) {
      const { refusal, ...stored } = rows[index]!;
      if (refusal === null) resolve(stored);
      else reject(new ObjectRefused(refusal));
    }
  } catch (error) {
    const code = String((error as { code?: string }).code);
    if (VALUE_ERROR.test(code)) return putEach(putOne, bucketId, batch);
    // Refused as a whole: the bucket is gone.
    const reason = code === REFUSED ? new ObjectRefused((error as Error).message as Refusal) : error;
    for (const { reject } of batch) reject(reason);
  }
}

async function putEach(putOne: Put, bucketId: string, batch: Waiting[]): Promise<void> {
  await Promise.all(batch.map(({ object, resolve, reject }) => putOne(bucketId, object).then(resolve, reject)));
}
