// Applications that were stopped for a move, and start again where the installation goes on.
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../core/config';
import { makePassableDirectory } from '../../core/directory';
import { replaceFileDurably } from '../../core/files';
import { backupDirectory } from '../platform/backup_journal';

type Place = Pick<Config, 'dataDir'>;

const fileOf = (config: Place): string => path.join(backupDirectory(config), 'stopped-applications.json');

export async function readStopped(config: Place): Promise<string[]> {
  return existsSync(fileOf(config)) ? (JSON.parse(await readFile(fileOf(config), 'utf8')) as string[]) : [];
}

export async function saveStopped(config: Place, ids: readonly string[]): Promise<void> {
  makePassableDirectory(backupDirectory(config));
  await replaceFileDurably(fileOf(config), JSON.stringify(ids));
}

export async function removeStopped(config: Place): Promise<void> {
  await rm(fileOf(config), { force: true });
}
