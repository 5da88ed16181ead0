// A file that is being written. It counts against the size limit from its first byte, and gets its final name when it
// is complete.
import { open, rm } from 'node:fs/promises';
import type { StoredObject } from './stored_object';

/** A file for a body or a form of it: positions are relative to the body. */
export interface NewFile {
  readonly id: string;
  write(bytes: Buffer, position: number): Promise<void>;
  /** @throws Error where the file is shorter */
  read(position: number, length: number): Promise<Buffer>;
  /** The file is complete: it is renamed and the object is indexed, unless `isWanted` has become false. */
  commit(size: number, isWanted: () => boolean): Promise<StoredObject | null>;
  discard(): Promise<void>;
  /** To be called after the last read. */
  close(): Promise<void>;
}

interface NewFileOptions {
  id: string;
  /** Temporary path, until the file is complete. */
  file: string;
  /** Bytes before the body. */
  start: number;
  /** Called as the file grows; called with the negative sum when the file is complete or removed. */
  count(bytes: number): void;
  /** Renames the file to its final name. */
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
