// The folder is the registry: every file that exports `job` is a kind that the loop works on.
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Job } from './job';

/** Every job of this folder, by file name. @throws Error where two jobs have one table */
export function allJobs(): Job[] {
  const load = createRequire(__filename);
  const files = readdirSync(__dirname).filter((file) => /^[a-z_]+\.(ts|js)$/.test(file) && !file.endsWith('.d.ts'));
  const jobs = files.sort().flatMap((file) => (load(`./${file.replace(/\.\w+$/, '')}`) as { job?: Job }).job ?? []);
  if (new Set(jobs.map(({ table }) => table)).size < jobs.length) throw new Error('jobs: two jobs work on one table');
  return jobs;
}
