import { join } from 'node:path';
import type { Config } from '../config';

/** Where the files of messages are. */
export function mailDirectory({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'mail');
}
