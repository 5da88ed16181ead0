// The file of settings of an installed release, and its content of before while a change of it is tried out.
import { readFileSync, existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { replaceFileDurably, syncDirectory } from '../../core/files';
import { SetupError } from './setup_error';

export interface SettingsFile {
  file: string;
  read(): string;
  /** Replaces the text, and keeps that of before until `keep` or `restore`. @throws SetupError: nothing changed */
  write(text: string): Promise<void>;
  /** The text of before, while a change is on trial. */
  readBefore(): string;
  /** Whether a change has been written, and neither kept nor taken back: its process was killed. */
  isOnTrial(): boolean;
  keep(): Promise<void>;
  restore(): Promise<void>;
}

const BEFORE = '.before-setup';
const ENV_FILE = /^--env-file(?:-if-exists)?=(.+)$/;

/** The file that this process has its settings from; null in a checkout. */
export function settingsFileOf(nodeArguments: readonly string[] = process.execArgv): string | null {
  return nodeArguments.flatMap((argument) => ENV_FILE.exec(argument)?.[1] ?? []).at(-1) ?? null;
}

export function openSettingsFile(file: string): SettingsFile {
  const before = `${file}${BEFORE}`;
  return {
    file,
    read: () => (existsSync(file) ? readFileSync(file, 'utf8') : ''),
    async write(text) {
      const isFirst = !existsSync(before);
      try {
        if (isFirst) await replaceFileDurably(before, existsSync(file) ? readFileSync(file) : '');
        await replaceFileDurably(file, text);
      } catch (error) {
        if (isFirst) await rm(before, { force: true }).catch(() => undefined);
        throw new SetupError(writeReason(error as NodeJS.ErrnoException, file));
      }
    },
    readBefore: () => readFileSync(before, 'utf8'),
    isOnTrial: () => existsSync(before),
    keep: () => rm(before, { force: true }),
    async restore() {
      await rename(before, file);
      await syncDirectory(path.dirname(file));
    },
  };
}

function writeReason({ code, message }: NodeJS.ErrnoException, file: string): string {
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return `The disk of ${file} is full. Make room, then call this again; nothing was changed.`;
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
    return `${file} cannot be written (${code}): run this command as root. Nothing was changed.`;
  return `${file} cannot be written: ${code ?? message}. Nothing was changed.`;
}
