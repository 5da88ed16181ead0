/** @tier heavy @quarter 2 @covers engines/cdn/cdn */
// The configuration of Varnish: nothing of a zone gets into it, and one that Varnish refuses changes nothing.
import { readFileSync } from 'node:fs';
import type { CdnEngine } from '../../../engines/cdn/edge/edge';
import { connectCli, type VarnishCli } from '../../../drivers/varnish/cli';
import { openVarnish } from '../../../drivers/varnish/driver';
import { renderVcl } from '../../../drivers/varnish/vcl';
import { startCdnBench, testEdgeOptions, type CdnBench } from '../../support/cdn/cdn_bench';
import { startCdnOrigin, type CdnOrigin } from '../../support/cdn/cdn_origin';
import { freePort } from '../../support/processes/free_port';
import { startService, type TestService } from '../../support/service';
import { startVarnish, type Varnish } from '../../support/cdn/varnish';
import { waitFor } from '../../support/wait_for';
import { needs } from '../../support/runner/programs';

jest.setTimeout(120_000);
const { describe: described } = needs('varnishd');
const CLI_WITHIN_MS = 30_000;
/** What would end a string, a command, a comment or a sub of VCL, and an expression of a ban. */
const HOSTILE = [
  '"} sub vcl_recv { return (synth(200)); } #',
  '"; C{ exit(1); }C',
  ' && obj.status == 200',
  '${x}%00\\"',
];
const MINUTE = { 'cache-control': 'max-age=60' };

let varnish: Varnish;
let cli: VarnishCli;

const activeVcl = async (): Promise<string> => {
  const [, name = ''] = /^active .*?(\w+)$/m.exec(await cli.run('vcl.list')) ?? [];
  return name;
};

async function open(port: number, log: (message: string) => void = () => undefined): Promise<CdnEngine> {
  return openVarnish({
    ...{ ...testEdgeOptions(), log, nodes: [varnish], secretFile: varnish.secretFile, objectBytesMax: 1_000_000 },
    gateway: { host: '127.0.0.1', port, token: 'token-of-tests' },
  });
}

/** The compiler of Varnish fails from now on, as for a configuration that this version does not know. */
const breakCompiler = (): Promise<string> => cli.run('param.set', 'cc_command', 'false');

described('the configuration of Varnish', () => {
  let bench: CdnBench;

  beforeEach(async () => {
    varnish = await startVarnish();
    cli = await connectCli(
      { host: varnish.host, port: varnish.cliPort },
      readFileSync(varnish.secretFile),
      CLI_WITHIN_MS,
    );
    bench = await startCdnBench(async () => open(await freePort()));
  });
  afterEach(async () => {
    cli?.close();
    await bench?.close();
    await varnish?.close();
  });

  test('has nothing of a zone, whatever its settings, addresses and purges say', async () => {
    const plain = await bench.zone('cdn_plain');
    const before = [await cli.run('vcl.list'), await cli.run('vcl.show', await activeVcl())];
    const host = await bench.zone(
      `cdn_${HOSTILE[0]}`.replaceAll(' ', ''),
      {},
      {
        origin: { url: bench.originUrl, host_header: 'origin.example.com";C{}C', is_internal: false },
      },
    );
    for (const text of HOSTILE) {
      const path = `/hostile/${encodeURIComponent(text)}?${text.replaceAll(/[ #\\]/g, '')}`;
      bench.origin(path.split('?', 1)[0] as string, [{ headers: { ...MINUTE, 'surrogate-key': text } }]);
      expect([text, (await bench.visit(plain, path)).status]).toEqual([text, 200]);
      expect((await bench.visit(plain, path)).headers['cache-status']).toBe('edge; hit');
      for (const type of ['urls', 'prefixes', 'tags'] as const)
        await bench.purge('cdn_plain', type, [`/none${text}`, `${text}\n`]);
      // A purge of another thing has not purged this one.
      expect([text, (await bench.visit(plain, path)).headers['cache-status']]).toEqual([text, 'edge; hit']);
    }
    await bench.visit(host, '/x');
    expect([await cli.run('vcl.list'), await cli.run('vcl.show', await activeVcl())].map(withoutCounts)).toEqual(
      before.map(withoutCounts),
    );
    for (const name of ['1.2.3.4"; C{', '127.0.0.1\n'])
      expect(() => renderVcl({ host: name, port: 1, token: 'x' })).toThrow('not fit');
    expect(() => renderVcl({ host: '127.0.0.1', port: 1, token: 'x"; C{' })).toThrow('not fit');
  });

  test('that is refused leaves the one before in service', async () => {
    const host = await bench.zone('cdn_served');
    bench.origin('/kept', [{ headers: MINUTE }]);
    await bench.visit(host, '/kept');
    const name = await activeVcl();
    await breakCompiler();
    const messages: string[] = [];
    const other = await startCdnBench(async () => open(await freePort(), (message) => void messages.push(message)));
    try {
      await expect(other.zone('cdn_refused')).rejects.toMatchObject({
        reason: 'unsupported',
        message: expect.stringContaining('refuses the configuration'),
      });
      expect(messages).toContainEqual(expect.stringContaining('is out of service'));
      expect(await activeVcl()).toBe(name);
      // Of the engine that has it, objects and purges work on.
      expect((await bench.visit(host, '/kept')).headers['cache-status']).toBe('edge; hit');
      await bench.purge('cdn_served', 'all');
      expect((await bench.visit(host, '/kept')).headers['cache-status']).toBe('edge; fwd=uri-miss; stored');
    } finally {
      await other.close();
    }
  });
});

/** How often each is used differs from time to time. */
function withoutCounts(text: string): string {
  return text.replaceAll(/ +\d+ /g, ' ');
}

described('a service whose Varnish refuses the configuration', () => {
  let origin: CdnOrigin;
  let service: TestService;
  let port: number;

  beforeAll(async () => {
    [origin, varnish, port] = [await startCdnOrigin(), await startVarnish(), await freePort()];
    cli = await connectCli(
      { host: varnish.host, port: varnish.cliPort },
      readFileSync(varnish.secretFile),
      CLI_WITHIN_MS,
    );
    await breakCompiler();
    service = await startService({
      worker: true,
      settings: {
        ...{ ALLOW_PRIVATE_ADDRESSES: '1', INGRESS_PORT: String(port) },
        CDN_VARNISH_NODES: `127.0.0.1:${varnish.port}/${varnish.cliPort}`,
        CDN_VARNISH_SECRET_FILE: varnish.secretFile,
        CDN_GATEWAY: `127.0.0.1:${await freePort()}`,
      },
    });
  });
  afterAll(async () => {
    cli?.close();
    await service?.close();
    await varnish?.close();
    await origin?.close();
  });

  test('its zones say why they failed, and their visitors are answered by the origin', async () => {
    const body = { name: 'refused', origin: { type: 'url', url: origin.url } };
    const zone = (await service.call('POST', '/v2/cdn_zones', { body, headers: { Prefer: 'wait=20' } })).body;
    expect([zone.status, zone.status_reason]).toEqual([
      'failed',
      'Varnish refuses the configuration of the platform. The log of the service says why.',
    ]);
    const seen = await origin.visit(port, String(zone.hostname), '/x?max-age=60', {}, 'GET');
    expect([seen.status, seen.headers['cache-status']]).toEqual([200, 'edge; fwd=bypass']);
  });

  test('its zones are active once Varnish takes it', async () => {
    await cli.run('param.reset', 'cc_command');
    const [zone] = (await service.call('GET', '/v2/cdn_zones')).body.data;
    const path = `/v2/cdn_zones/${String(zone.id)}`;
    const again = await waitFor(
      'the configuration',
      async () => {
        const options = { body: { compression: false }, headers: { Prefer: 'wait=20' } };
        const { body } = await service.call('PATCH', path, options);
        return body.status === 'active' && body;
      },
      60_000,
    );
    expect(again.status_reason).toBeNull();
  });
});
