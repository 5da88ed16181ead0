// The bytes of a message that is coming in: in memory while they are few, else in a file, which is on the disk at the
// end.
import { open, rm, type FileHandle } from 'node:fs/promises';
import type { MessageText } from './message/message_text';
import { TRY_LATER } from './reply';

export class Spool {
  private chunks: Buffer[] = [];
  private bytes = 0;
  private file: FileHandle | null = null;

  /** @param inlineBytesMax what is larger becomes a file */
  constructor(
    private readonly path: string,
    private readonly inlineBytesMax: number,
  ) {}

  async write(chunk: Buffer): Promise<void> {
    this.bytes += chunk.length;
    if (this.bytes > this.inlineBytesMax) return this.append(chunk);
    this.chunks.push(chunk);
  }

  /** What has been written so far. */
  text(): MessageText {
    return this.file ? this.path : Buffer.concat(this.chunks);
  }

  /** @returns the content that is to be stored with the row; null: the file has it, and is on the disk */
  async end(): Promise<Buffer | null> {
    if (!this.file) return Buffer.concat(this.chunks);
    await this.file.sync();
    await this.file.close();
    return null;
  }

  /** Leaves no file. */
  async discard(): Promise<void> {
    if (!this.file) return;
    await this.file.close().catch(() => {});
    await rm(this.path, { force: true });
  }

  /** @throws SmtpReply where no file can be made */
  private async append(chunk: Buffer): Promise<void> {
    this.file ??= await open(this.path, 'wx', 0o600).catch(() => {
      throw TRY_LATER();
    });
    await this.file.writev([...this.chunks.splice(0), chunk]);
  }
}
