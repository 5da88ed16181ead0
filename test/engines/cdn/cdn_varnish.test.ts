/** @tier heavy @quarter 4 @covers engines/cdn/cdn */
// Varnish of Debian as the engine of CDN zones: by the rules of all engines, over the API, and with a node that dies.
import { openVarnish } from '../../../drivers/varnish/driver';
import { purgedNodes } from '../../../models/cdn/cdn_purge/work';
import { describeCdnCache } from '../../conformance/cdn_cache';
import { startCdnOrigin, type CdnOrigin } from '../../support/cdn/cdn_origin';
import { testEdgeOptions } from '../../support/cdn/cdn_bench';
import { freePort } from '../../support/processes/free_port';
import { startService, type Answer, type TestService } from '../../support/service';
import { startVarnish, type Varnish } from '../../support/cdn/varnish';
import { waitFor } from '../../support/wait_for';
import { needs } from '../../support/runner/programs';

jest.setTimeout(120_000);
const { describe: described } = needs('varnishd');

described('Varnish', () => {
  const running: Varnish[] = [];
  afterAll(() => Promise.all(running.map((one) => one.close())));

  describeCdnCache('varnish', async () => {
    const varnish = await startVarnish();
    running.push(varnish);
    return openVarnish({
      ...testEdgeOptions(),
      ...{ nodes: [varnish], secretFile: varnish.secretFile, objectBytesMax: 10_000_000 },
      gateway: { host: '127.0.0.1', port: await freePort(), token: 'token-of-tests' },
    });
  });
});

described('two Varnish nodes behind the API', () => {
  let origin: CdnOrigin;
  let nodes: Varnish[];
  let service: TestService;
  let zone: Answer['body'];
  let port: number;

  beforeAll(async () => {
    origin = await startCdnOrigin();
    nodes = await Promise.all([startVarnish(), startVarnish()]);
    port = await freePort();
    service = await startService({
      worker: true,
      settings: {
        ALLOW_PRIVATE_ADDRESSES: '1',
        INGRESS_PORT: String(port),
        CDN_VARNISH_NODES: nodes.map((node) => `127.0.0.1:${node.port}/${node.cliPort}=${node.directory}`).join(','),
        CDN_VARNISH_SECRET_FILE: (nodes[0] as Varnish).secretFile,
        CDN_GATEWAY: `127.0.0.1:${await freePort()}`,
      },
    });
    const body = { name: 'varnished', origin: { type: 'url', url: origin.url } };
    zone = (await service.call('POST', '/v2/cdn_zones', { body, headers: { Prefer: 'wait=20' } })).body;
  });
  afterAll(async () => {
    await service?.close();
    await Promise.all((nodes ?? []).map((node) => node.close()));
    await origin?.close();
  });

  const visit = (target: string): ReturnType<CdnOrigin['visit']> =>
    origin.visit(port, String(zone.hostname), target, {}, 'GET');
  const statuses = async (): Promise<unknown[]> => {
    const seen = [];
    for (let index = 0; index < 12; index += 1)
      seen.push((await visit(`/n/${index}?max-age=600`)).headers['cache-status']);
    return seen;
  };
  const all = (status: string): string[] => Array.from({ length: 12 }, () => status);
  const path = (): string => `/v2/cdn_zones/${String(zone.id)}/purges`;
  const isCompleted = async (id: unknown): Promise<boolean> =>
    (await service.call('GET', `${path()}/${String(id)}`)).body.status === 'completed';

  test('objects are spread over the nodes, and a purge is done on each', async () => {
    expect(zone.status).toBe('active');
    await waitFor('both nodes', async () => {
      await statuses();
      return (await statuses()).every((status) => status === 'edge; hit');
    });
    const made = await service.call('POST', path(), { body: { type: 'prefixes', values: ['/n/'] } });
    await waitFor('the purge', () => isCompleted(made.body.id));
    expect(await statuses()).toEqual(all('edge; fwd=uri-miss; stored'));
    expect([...(await purgedNodes(service.platform.database, String(made.body.id)))].sort()).toEqual(
      nodes.map((node) => `127.0.0.1:${node.port}`).sort(),
    );
  });

  test('a purge waits for a node that is away, and visitors do not', async () => {
    await nodes[1]?.kill();
    const seen = await statuses();
    expect(new Set(seen)).toEqual(new Set(['edge; hit', 'edge; fwd=uri-miss; stored']));
    const made = await service.call('POST', path(), { body: { type: 'all' } });
    const stored = (): Promise<Set<string>> => purgedNodes(service.platform.database, String(made.body.id));
    await waitFor('the node that is there', async () => (await stored()).size === 1);
    expect(await isCompleted(made.body.id)).toBe(false);
    await nodes[1]?.start();
    await waitFor('the purge', () => isCompleted(made.body.id));
    expect((await stored()).size).toBe(2);
    expect((await statuses()).filter((status) => status === 'edge; hit')).toEqual([]);
  });

  test('the metrics of the zone are exact', async () => {
    const counted = await waitFor('the counters', async () => {
      const { body } = await service.call('GET', `/v2/cdn_zones/${String(zone.id)}/metrics`);
      const total = (metric: string): number =>
        body.series
          .find((one: Answer['body']) => one.metric === metric)
          ?.points.reduce((sum: number, { value }: { value: number }) => sum + value, 0) ?? 0;
      return total('requests') >= 60 && { requests: total('requests'), asked: total('origin_requests') };
    });
    expect(counted.asked).toBe(
      Array.from({ length: 12 }, (_, index) => origin.requests(`/n/${index}`).length).reduce(
        (sum, one) => sum + one,
        0,
      ),
    );
  });

  test('counters of the nodes are on /metrics', async () => {
    const figures = async (): Promise<string> => (await fetch(`${service.adminUrl}/metrics`)).text();
    for (const node of nodes)
      expect(await figures()).toMatch(
        new RegExp(`platform_varnish{node="127.0.0.1:${node.port}",counter="MAIN.cache_hit"} \\d`),
      );
  });
});
