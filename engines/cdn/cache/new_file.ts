// A file that is written: it counts for the limit from its first byte on, and gets its name when it is whole.
import { open, rm } from 'node:fs/promises';
import type { StoredObject } from './store';

/** Of a body, or of a form of it: positions are those of the bytes. */
export interface NewFile {
  readonly id: string;
  write(bytes: Buffer, position: number): Promise<void>;
  /** @throws Error where less is there */
  read(position: number, length: number): Promise<Buffer>;
  /**
   * The bytes are whole: the object can be found from now on, unless it is not wanted any more when the file is in
   * place.
   */
  commit(size: number, isWanted: () => boolean): Promise<StoredObject | null>;
  discard(): Promise<void>;
  /** After the last read. */
  close(): Promise<void>;
}

interface NewFileOptions {
  id: string;
  /** Its name until it is whole. */
  file: string;
  /** Bytes in front of the body. */
  start: number;
  /** Called as the file grows, and with the negative sum when it is whole or has gone. */
  count(bytes: number): void;
  /** Gives the file its name. */
  place(size: number, isWanted: () => boolean): Promise<StoredObject | null>;
}

export function openNewFile({ id, file, start, count, place }: NewFileOptions): NewFile {
  const opening = open(file, 'wx+', 0o600);
  opening.catch(() => undefined);
  let length = 0;
  const grow = (end: number): void => {
    if (end <= length) return;
    count(end - length);
    length = end;
  };
  const release = (): void => {
    count(-length);
    length = 0;
  };
  return {
    id,
    async write(bytes, position) {
      const handle = await opening;
      const { bytesWritten } = await handle.write(bytes, 0, bytes.length, start + position);
      if (bytesWritten !== bytes.length) throw new Error('no room for the file of an object');
      grow(start + position + bytes.length);
    },
    async read(position, wanted) {
      const handle = await opening;
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(wanted), 0, wanted, start + position);
      if (bytesRead !== wanted) throw new Error('the file of an object is damaged');
      return buffer;
    },
    async commit(size, isWanted) {
      const object = await place(size, isWanted);
      release();
      if (!object) await rm(file, { force: true });
      return object;
    },
    async discard() {
      release();
      await rm(file, { force: true });
    },
    close: async () => (await opening).close(),
  };
}
