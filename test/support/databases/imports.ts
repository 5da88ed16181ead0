// Imports of files that a test writes.
import type { Hall } from './database_hall';
import { waitFor } from '../wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */

export interface Imports {
  /** Sends a file. @returns the import once it has ended */
  send(content: Uint8Array | string, body?: object): Promise<any>;
  /** Begins an import that waits for its file. */
  begin(body?: object): Promise<any>;
  put(address: string, content: Uint8Array | string): Promise<Response>;
  get(id: string): Promise<any>;
  ended(id: string): Promise<any>;
  place: string;
}

export function importsOf(hall: Hall, database: string): Imports {
  const place = `/v2/databases/${database}/imports`;
  const get = async (id: string) => (await hall.call('GET', `${place}/${id}`)).body;
  const put = (address: string, content: Uint8Array | string) =>
    fetch(address, { method: 'PUT', body: content as BodyInit });
  const ended = (id: string) =>
    waitFor('the end of the import', async () => {
      const one = await get(id);
      return ['completed', 'failed', 'canceled'].includes(one.status) ? one : null;
    });
  const begin = async (body: object = {}) => {
    const { status, body: made } = await hall.call('POST', place, { body: { source: { upload: true }, ...body } });
    if (status !== 201) throw new Error(JSON.stringify(made));
    return made;
  };
  return {
    ...{ place, get, put, ended, begin },
    async send(content, body) {
      const { id, upload_url } = await begin(body);
      const sent = await put(upload_url, content);
      if (sent.status !== 200) throw new Error(await sent.text());
      return ended(id);
    },
  };
}
