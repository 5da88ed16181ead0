// What drivers need of files beside node:fs.
import { randomBytes } from 'node:crypto';
import { constants, type WriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import path from 'node:path';

interface ReplacementOptions {
  /** Default 0600. */
  mode?: number;
  /** Whose the file becomes, which only root may say. */
  owner?: { uid: number; gid: number };
}

/** How the names of replacements end that a killed process left. They begin with a dot. */
export const REPLACEMENT_ENDING = '.new';

/** For `catch`: a file or directory that is not there. @throws any other error of the file system */
export function absentIsNull(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
  throw error;
}

/**
 * A stream into a new file, which is there when this returns: a file that a stream opens by itself may appear after the
 * stream was destroyed, when whoever removes what is incomplete has looked for it.
 * @param flush its bytes are on the disk before it ends
 * @throws Error of the file system, EEXIST where the file is there
 */
export async function newFileStream(file: string, flush = false): Promise<WriteStream> {
  const handle = await open(file, 'wx', 0o600);
  return handle.createWriteStream({ flush });
}

/**
 * Replaces a small file: whoever reads it, also after a power cut, finds the content of before or all of this one. The
 * directory may belong to another user: no link there is followed.
 * @throws Error of the file system
 */
export async function replaceFile(
  file: string,
  content: string | Buffer,
  { mode = 0o600, owner }: ReplacementOptions = {},
): Promise<void> {
  const draft = path.join(
    path.dirname(file),
    `.${path.basename(file)}.${randomBytes(6).toString('hex')}${REPLACEMENT_ENDING}`,
  );
  const handle = await open(
    draft,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    mode,
  );
  try {
    try {
      await handle.writeFile(content);
      if (owner) await handle.chown(owner.uid, owner.gid);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** The same, and no power cut brings the content of before back. @throws Error of the file system */
export async function replaceFileDurably(
  file: string,
  content: string | Buffer,
  options: ReplacementOptions = {},
): Promise<void> {
  await replaceFile(file, content, options);
  await syncDirectory(path.dirname(file));
}

/** Makes the names in a directory survive a power cut. @throws Error of the file system */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
