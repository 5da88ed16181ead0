// Buffer of an incoming message: in memory while it is small, else in a file, which is synced at the end.
import { open, rm, type FileHandle } from 'node:fs/promises';
import type { MessageText } from './message/message_text';
import { TRY_LATER } from './reply';

export class Spool {
  private chunks: Buffer[] = [];
  private bytes = 0;
  private file: FileHandle | null = null;

  /** @param inlineBytesMax larger messages become a file */
  constructor(
    private readonly path: string,
    private readonly inlineBytesMax: number,
  ) {}

  async write(chunk: Buffer): Promise<void> {
    this.bytes += chunk.length;
    if (this.bytes > this.inlineBytesMax) return this.append(chunk);
    this.chunks.push(chunk);
  }

  /** The text written so far. */
  text(): MessageText {
    return this.file ? this.path : Buffer.concat(this.chunks);
  }

  /** @returns the content to be stored in the row; null: it is in the file, which is synced */
  async end(): Promise<Buffer | null> {
    if (!this.file) return Buffer.concat(this.chunks);
    await this.file.sync();
    await this.file.close();
    return null;
  }

  /** Removes the file. */
  async discard(): Promise<void> {
    if (!this.file) return;
    await this.file.close().catch(() => {});
    await rm(this.path, { force: true });
  }

  /** @throws SmtpReply where no file can be created */
  private async append(chunk: Buffer): Promise<void> {
    this.file ??= await open(this.path, 'wx', 0o600).catch(() => {
      throw TRY_LATER();
    });
    await this.file.writev([...this.chunks.splice(0), chunk]);
  }
}
