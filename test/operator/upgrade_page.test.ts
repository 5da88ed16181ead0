/** @tier heavy @quarter 3 @covers server/installation server/upgrade/begin.ts */
// An upgrade that an operator starts in the dashboard: the same steps as those of the command, and the way back.
import { execFileSync } from 'node:child_process';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import pg from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import { version } from '../../package.json';
import { canInstall, installRelease, installing, startingWith, type Installed } from '../support/processes/installed';
import { ROOT } from '../support/runner/repository';

jest.setTimeout(900_000);
const asRoot = installing();
const [NEXT, FAILING] = ['1.0.1', '1.0.2'];
const START_THAT_FAILS = startingWith('process.exit(1);');
const PASSWORD = 'correct horse battery';

let machine: Installed;
let server: Server;
let cookie = '';
const archives = new Map<string, string>();

beforeAll(async () => {
  if (!canInstall) return;
  machine = await installRelease();
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const key = path.join(machine.directory, 'key.pem');
  writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  writeFileSync(path.join(machine.directory, 'public.pem'), publicKey.export({ type: 'spki', format: 'pem' }));
  server = createServer((request, response) => {
    const name = path.basename(request.url ?? '');
    const file = name === 'releases.json' ? path.join(machine.directory, name) : archives.get(name);
    // The installation also asks the address itself, to compare clocks.
    if (file === undefined) return response.writeHead(404).end();
    response.end(readFileSync(file));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await publish(NEXT);
  const settings = `RELEASES_URL=${url}\nRELEASES_KEY_FILE=${machine.directory}/public.pem`;
  chmodSync(machine.directory, 0o755);
  await machine.run(`echo '${settings}' >>/etc/platform/platform.env && systemctl restart platform.service`);
  await machine.run(`echo '${PASSWORD}' | platform user password --email owner@example.com --password-stdin`);
  await machine.waitUntilServed(version);
  await logIn();
});
afterAll(async () => {
  server?.close();
  await machine?.close();
});

/** Signs an index with this release, which the service finds at once. */
async function publish(release: string, edit?: string): Promise<void> {
  const file = await machine.archive(release, edit);
  const name = path.basename(file);
  archives.set(name, file);
  const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
  const entry = {
    ...{ version: release, released_at: '2026-11-28T00:00:00.000Z', upgrades_from: null, security: null },
    ...{ changes: '- More', archives: { [process.arch]: { name, size: statSync(file).size, sha256 } } },
  };
  const script = `import { writeIndex } from ${JSON.stringify(path.join(ROOT, 'tools/release/release_index.mjs'))};
    writeIndex(process.argv[1], process.argv[2], JSON.parse(process.argv[3]));`;
  const { directory } = machine;
  const words = [
    '--input-type=module',
    '-e',
    script,
    directory,
    path.join(directory, 'key.pem'),
    JSON.stringify(entry),
  ];
  execFileSync(process.execPath, words);
}

/* oxlint-disable-next-line typescript/no-explicit-any -- what the service sends */
async function ask(query: string, variables: object = {}): Promise<any> {
  const answer = await fetch(`${machine.base}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Cookie: cookie },
    body: JSON.stringify({ query, variables }),
  });
  const [set] = answer.headers.getSetCookie();
  if (set?.startsWith('platform_session=')) cookie = (set as string).split(';')[0] as string;
  return answer.json();
}

async function logIn(): Promise<void> {
  const input = { email: 'owner@example.com', password: PASSWORD };
  const { errors } = await ask('mutation ($input: LoginInput!) { login(input: $input) { user { id } } }', { input });
  expect(errors).toBeUndefined();
}

/** The service asks once a day: as if that were over. */
async function askForReleasesAgain(): Promise<void> {
  const place = '/var/lib/platform-api/postgres';
  const { out } = await machine.run(`sed -n 4p ${place}/data-*/postmaster.pid; cat ${place}/password`);
  const [port, password] = out.trim().split('\n');
  const client = new pg.Client({
    host: '127.0.0.1',
    port: Number(port),
    user: 'postgres',
    password: password as string,
  });
  await client.connect();
  await client.query('update release_notices set next_at = now()');
  await client.end();
  await machine.run('systemctl restart platform.service');
  await machine.waitUntilServed(version);
}

const STATE = `{ installation { version newer_release { version } } installationState { upgrade_obstacle version_before
  upgrade { kind from to outcome summary backup steps { title state } } } }`;
const START = (field: string): string =>
  `mutation ($version: String!, $password: String!) { ${field}(version: $version, password: $password) {
    upgrade { outcome steps { state } } } }`;

async function waitForRelease(release: string): Promise<void> {
  for (const until = Date.now() + 60_000; ; await sleep(500)) {
    const { data } = await ask(STATE);
    if (data?.installation.newer_release?.version === release) return;
    if (Date.now() > until) throw new Error(`${release} is not noticed`);
  }
}

/** Asks as the page does, also while the service restarts. */
async function follow(): Promise<{ outcome: string; summary: string; seen: Set<string> }> {
  const seen = new Set<string>();
  for (const until = Date.now() + 240_000; ; await sleep(200)) {
    const answer = await ask(STATE).catch(() => null);
    const upgrade = answer?.data?.installationState.upgrade;
    for (const { title, state } of upgrade?.steps ?? []) if (state === 'running') seen.add(title);
    if (upgrade && upgrade.outcome !== 'running') return { ...upgrade, seen };
    if (Date.now() > until) throw new Error('it does not end');
  }
}

asRoot('an operator upgrades in the dashboard, sees the steps while the API restarts, and goes back', async () => {
  await waitForRelease(NEXT);
  expect((await ask(STATE)).data.installationState.upgrade_obstacle).toBeNull();
  const both = await Promise.all(
    [1, 2].map(() => ask(START('upgradeInstallation'), { version: NEXT, password: PASSWORD })),
  );
  const codes = both.map(({ errors }) => errors?.[0].extensions.code);
  expect(codes.sort()).toEqual(['invalid_state', undefined]);
  const up = await follow();
  expect([up.outcome, up.summary]).toEqual(['done', `The upgrade from ${version} to ${NEXT} is done.`]);
  expect([...up.seen]).toEqual(expect.arrayContaining(['wait until every part is healthy that was healthy before']));
  expect([await machine.current(), await machine.served()]).toEqual([NEXT, NEXT]);
  expect((await ask(STATE)).data).toMatchObject({
    installation: { version: NEXT, newer_release: null },
    installationState: { version_before: version, upgrade: { backup: expect.stringMatching(/upgrades\/.*-1\.0\.0$/) } },
  });
  expect((await ask(START('rollBackInstallation'), { version, password: PASSWORD })).errors).toBeUndefined();
  const back = await follow();
  expect([back.outcome, await machine.current()]).toEqual(['done', version]);
});

asRoot('a session that was revoked sees nothing of an upgrade, which goes on, and back where it fails', async () => {
  await publish(FAILING, START_THAT_FAILS);
  await askForReleasesAgain();
  await waitForRelease(FAILING);
  expect((await ask(START('upgradeInstallation'), { version: FAILING, password: PASSWORD })).errors).toBeUndefined();
  await ask('mutation { logout }');
  expect((await ask(STATE)).errors[0].extensions.code).toBe('session_required');
  const last = await machine.waitUntilEnded();
  expect([last.outcome, last.to]).toEqual(['undone', FAILING]);
  await machine.waitUntilServed(version);
  await logIn();
  const { upgrade } = (await ask(STATE)).data.installationState;
  expect(upgrade.summary).toContain(`was not made, and ${version} serves as before: ${FAILING} ends again and again`);
});

/** Runs what is behind `--`, as a transient unit does. */
const SYSTEMD_RUN = `#!/bin/bash
cd /run/stand-in && printf '%s\\n' "$@" >setup-words
while [ "$1" != -- ]; do shift; done
shift
env -i PATH="$PATH" "$@" >/dev/null 2>setup.log </dev/null &
echo $! >setup.pid
`;

asRoot('a setup that an operator starts checks first, says why it goes no further, and changes nothing', async () => {
  writeFileSync(path.join(machine.directory, 'systemd-run'), SYSTEMD_RUN);
  const settings = 'ACME_DIRECTORY=http://127.0.0.1:1/directory';
  await machine.run(`install -m 755 systemd-run /usr/local/bin/systemd-run
    echo '${settings}' >>/etc/platform/platform.env && systemctl restart platform.service`);
  await machine.waitUntilServed(version);
  const before = (await machine.run('cat /etc/platform/platform.env')).out;
  const query = `mutation ($input: SetupInput!, $password: String!) {
    setUpInstallation(input: $input, password: $password) { token address } }`;
  const input = { domain: 'Example.com', email: 'ops@example.com', ips: ['192.0.2.10'] };
  expect((await ask('{ installationState { setup_obstacle } }')).data.installationState.setup_obstacle).toBeNull();
  const { data } = await ask(query, { input, password: PASSWORD });
  expect(data.setUpInstallation.address).toBe('https://platform.example.com');
  const { token } = data.setUpInstallation;
  const kept = cookie;
  cookie = '';
  const progress = 'query ($token: String!) { setupProgress(token: $token) { outcome lines reason address } }';
  expect((await ask(progress, { token: `${token}x` })).errors[0].extensions.code).toBe('not_found');
  let found = (await ask(progress, { token })).data.setupProgress;
  for (const until = Date.now() + 90_000; found.outcome === 'running' && Date.now() < until; await sleep(500))
    found = (await ask(progress, { token })).data.setupProgress;
  cookie = kept;
  expect(found).toMatchObject({ outcome: 'failed', address: 'https://platform.example.com' });
  expect(found.reason).toMatch(/^The file of settings has INGRESS_PORT=\d+ \(needed: 80\)\. Remove these lines/);
  expect((await machine.run('cat /etc/platform/platform.env')).out).toBe(before);
  const { out } = await machine.run('cat /run/stand-in/setup-words; ls -l /opt/platform/.setup');
  expect(out.split('\n')).toEqual(
    expect.arrayContaining(['--property=StandardOutput=null', '--domain=example.com', '--ip=192.0.2.10', '--journal']),
  );
  expect(out).toMatch(/^-rw------- .*run\.json$/m);
  expect(out).not.toContain(PASSWORD);
});
