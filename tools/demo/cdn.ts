// A CDN zone before an application: the first visitor reaches it, the next ones the cache, until it is purged.
import type { Resource } from './api';
import type { Show } from './show';
import type { Stage } from './stage';
import { visit } from './visitors';

const READY_WITHIN_MS = 10_000;
const EVERY_MS = 100;

export async function showCache(stage: Stage, show: Show, application_id: string): Promise<void> {
  show.step('A CDN zone is put before the application');
  const zone = await stage.api.call<Resource & { hostname: string }>('POST', '/v2/cdn_zones', {
    name: 'sample',
    origin: { type: 'application', application_id },
  });
  await until(async () => (await stage.api.call('GET', `/v2/cdn_zones/${zone.id}`)).status === 'active');
  const cacheStatus = async (): Promise<string> => (await visit(stage.port, zone.hostname)).cache;
  const [first, second] = [await cacheStatus(), await cacheStatus()];
  show.expect(first.includes('uri-miss') && second.endsWith('; hit'), `${zone.hostname}: "${first}", then "${second}"`);
  const path = `/v2/cdn_zones/${zone.id}/purges`;
  const purge = await stage.api.call('POST', path, { type: 'all' });
  await until(async () => (await stage.api.call('GET', `${path}/${purge.id}`)).status === 'completed');
  const third = await cacheStatus();
  show.expect(third.includes('uri-miss'), `after a purge: "${third}"`);
  await stage.api.call('DELETE', `/v2/cdn_zones/${zone.id}`);
}

/** Resolves in any case: what follows shows whether it was in vain. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + READY_WITHIN_MS; Date.now() < end && !(await isSo());)
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
}
