// Routes of the dashboard, and addresses of rows that are there for them.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../runner/repository';
import { operations, type World } from '../world';

const source = readFileSync(path.join(ROOT, 'clients/dashboard/src/pages/index.ts'), 'utf8');
export const PAGE_ROUTES = [...source.matchAll(/^ {2}\['([^']+)'/gm)].map(([, pattern]) => pattern as string);
/** What the id of a route is of: the operation that reads one. */
const READS: [prefix: string, operation: string][] = [
  ['/applications/:id/deployments/:', 'getDeployment'],
  ['/applications/:id/runs/:', 'getRun'],
  ['/applications/:id/schedules/:', 'getSchedule'],
  ['/applications/', 'getApplication'],
  ['/databases/', 'getDatabase'],
  ['/buckets/', 'getBucket'],
  ['/dns/', 'getDnsZone'],
  ['/email_domains/', 'getEmailDomain'],
  ['/observers/', 'getObserver'],
  ['/projects/:id/approvals/:', 'getApproval'],
  ['/projects/', 'getProject'],
];
/** The address of a route, with ids of rows that are there. */
export async function pageAddress(world: World, pattern: string): Promise<string> {
  const name = READS.find(([prefix]) => pattern.startsWith(prefix))?.[1];
  const operation = operations.find(({ id }) => id === name);
  const ids = operation ? [...(await world.path(operation)).matchAll(/\w+_\w{10,}/g)].map(([id]) => id) : [];
  // The API finds the project of an approval by itself.
  if (name === 'getApproval') ids.unshift(world.project);
  return pattern.replace(/:\w+/g, () => ids.shift() ?? '').replace(/\/\*$/, '');
}
