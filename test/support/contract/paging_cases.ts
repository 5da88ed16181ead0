// Rows of every kind in one project, and its lists.
import type { Operation } from '../../../contract/operations';
import { specOf } from '../../../contract/spec';
import { startDnsServer, type DnsServer } from '../dns/dns_server';
import { SAMPLE_SETTINGS } from '../builds/sample_repository';
import { startService, type Answer, type TestService } from '../service';
import { core, kindNames, openWorld, operations, typeName, type World } from '../world';
import { FROM_PROVIDERS } from '../world_git';

export let service: TestService;

export let dns: DnsServer;

export let world: World;

export const lists = operations.filter(
  ({ id, field, method }) => method === 'GET' && field.list && !FROM_PROVIDERS.includes(id),
);

/** A twin binding is the same list at another place. */
export const distinct = lists.filter(({ field, key }) => key === field.name);

/** The kind whose rows a list shows, undefined for catalogs. */
export function kindOf(operation: Operation): string | undefined {
  const row = typeName(operation.field.definition.type).replace(/List$/, '').replace(/^My/, '');
  return kindNames.find(
    (kind) =>
      kind
        .split('_')
        .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
        .join('') === row,
  );
}

export async function get(
  operation: Operation,
  query: Record<string, string | number | null>,
): Promise<Answer['body']> {
  const search = Object.entries(query)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  const answer = await world.call('GET', `${await world.path(operation)}?${search.join('&')}`);
  if (answer.status !== 200) throw new Error(`${operation.id}?${search.join('&')}: ${answer.text}`);
  return answer.body;
}

export function sortsOf(operation: Operation): string[] {
  const argument = operation.query.find(({ name }) => name === 'sort');
  return argument ? (specOf(core.schema, argument).sorts ?? []).flatMap((sort) => [sort, `-${sort}`]) : [];
}

/** To be called where tests are declared. */
export function setUpPaging(): void {
  beforeAll(async () => {
    dns = await startDnsServer();
    service = await startService({
      settings: {
        ...SAMPLE_SETTINGS,
        DNS_RESOLVERS: dns.address,
        QUOTAS: '{"databases": null, "database_storage_gb": null, "registries": null, "email_relay_zones": null}',
      },
    });
    world = openWorld(service);
    for (const kind of kindNames) for (let turn = 0; turn < 5; turn += 1) await world.fresh(kind);
  });
  afterAll(async () => {
    await service.close();
    await dns.close();
  });
}
