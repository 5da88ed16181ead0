import { join } from 'node:path';
import type { Config } from '../config';

/** Directory of message files. */
export function mailDirectory({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'mail');
}
