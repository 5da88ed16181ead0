// Who the client says that it is, against a server of our own: files that are replaced, plugins, certificates.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import type { ClusterAccess, ExecPlugin } from '../../../drivers/kubernetes/client/access';
import { openKubernetesClient } from '../../../drivers/kubernetes/client/client';
import {
  failureOf,
  respond,
  startOddApiServer,
  statusOf,
  TOKEN,
  type OddApiServer,
} from '../../support/kubernetes/odd_api_server';

let api: OddApiServer;
let directory: string;
beforeAll(async () => {
  api = await startOddApiServer();
  directory = mkdtempSync(path.join(tmpdir(), 'credentials-'));
});
afterAll(async () => {
  await api.close();
  rmSync(directory, { recursive: true });
});

const VERSION = { gitVersion: 'v1.34.4', major: '1', minor: '34' };

/** Who is taken: those whose header is this. */
function accept(...headers: string[]): void {
  api.answer(({ headers: { authorization = '' } }, response) =>
    headers.includes(authorization)
      ? respond(response, 200, VERSION)
      : respond(response, 401, statusOf(401, 'Unauthorized', 'Unauthorized')),
  );
}

async function call(access: ClusterAccess, times = 1): Promise<void> {
  const client = openKubernetesClient(access);
  try {
    for (let i = 0; i < times; i += 1) await client.version(driverContext(10_000));
  } finally {
    client.close();
  }
}

describe('a token', () => {
  test('is sent, and a refused one is not shown', async () => {
    accept(`Bearer ${TOKEN}`);
    await call(api.access());
    const error = await failureOf(call(api.access({ token: 'wrong-token' })));
    expect(error).toMatchObject({ reason: 'unauthorized', code: 'unauthorized', status: 401 });
    expect(JSON.stringify([error.message, error.stack, error])).not.toContain('wrong-token');
  });

  test('of a file is read again after it was refused', async () => {
    const file = path.join(directory, 'token');
    writeFileSync(file, 'old\n');
    accept('Bearer old');
    const client = openKubernetesClient(api.access({ tokenFile: file }));
    await client.version(driverContext(5000));
    accept('Bearer new');
    writeFileSync(file, 'new\n');
    await client.version(driverContext(5000));
    expect(api.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer old', 'Bearer new']);
    client.close();
  });

  test('with a line break is no header of its own', async () => {
    const error = await failureOf(call(api.access({ token: 'a\r\nX-Evil: 1' })));
    expect(error.reason).toBe('unauthorized');
    expect(error.message).not.toContain('Evil');
  });

  test('of a file that is missing is said without its path', async () => {
    const error = await failureOf(call(api.access({ tokenFile: path.join(directory, 'none') })));
    expect(error.reason).toBe('unauthorized');
    expect(error.message).toBe('A file with credentials for the cluster cannot be read (ENOENT).');
  });
});

describe('a plugin', () => {
  let count: string;
  const plugin = (name: string, script: string, more: Partial<ExecPlugin> = {}): ExecPlugin => {
    const command = path.join(directory, name);
    count = path.join(directory, `${name}.count`);
    writeFileSync(count, '');
    writeFileSync(command, `#!/bin/sh\necho x >>'${count}'\n${script}\n`);
    chmodSync(command, 0o755);
    return {
      ...{ apiVersion: version, command, args: [], env: {} },
      ...{ providesClusterInfo: false, installHint: null, ...more },
    };
  };
  const version = 'client.authentication.k8s.io/v1';
  const credential = (status: object): string =>
    `cat <<'END'\n${JSON.stringify({ apiVersion: version, kind: 'ExecCredential', status })}\nEND`;
  const runs = (): number => readFileSync(count, 'utf8').length / 2;

  test('runs once for all who wait, and again when its token expires', async () => {
    accept('Bearer made');
    const soon = new Date(Date.now() + 11_500).toISOString();
    const exec = plugin('expiring', credential({ token: 'made', expirationTimestamp: soon }));
    const client = openKubernetesClient(api.access({ exec }));
    await Promise.all(Array.from({ length: 5 }, () => client.version(driverContext(10_000))));
    await client.version(driverContext(10_000));
    expect(runs()).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 1_700));
    await client.version(driverContext(10_000));
    expect(runs()).toBe(2);
    client.close();
  });

  test('runs again where its token was refused, once', async () => {
    accept('Bearer other');
    const error = await failureOf(call(api.access({ exec: plugin('refused', credential({ token: 'made' })) })));
    expect(error.reason).toBe('unauthorized');
    expect(runs()).toBe(2);
  });

  test('gets the variables of its kubeconfig and of providers, and none of the platform', async () => {
    process.env.DATABASE_URL_OF_TEST = 'postgres://user:hunter2@db';
    process.env.AWS_PROFILE = 'shop';
    const out = path.join(directory, 'variables');
    const exec = plugin('environment', `env >'${out}'\n${credential({ token: 'made' })}`, {
      ...{ env: { OWN: 'own' }, providesClusterInfo: true },
    });
    accept('Bearer made');
    await call(api.access({ exec }));
    delete process.env.DATABASE_URL_OF_TEST;
    delete process.env.AWS_PROFILE;
    const seen = readFileSync(out, 'utf8');
    expect(seen).toMatch(/^OWN=own$/m);
    expect(seen).toMatch(/^AWS_PROFILE=shop$/m);
    expect(seen).not.toContain('hunter2');
    const info = JSON.parse(/^KUBERNETES_EXEC_INFO=(.*)$/m.exec(seen)?.[1] ?? '') as {
      spec: { cluster: { server: string } };
    };
    expect(info.spec.cluster.server).toBe(api.url);
  });

  test('may give a certificate', async () => {
    const { cert, key } = await api.authority.issue(['plugin-user']);
    api.answer(({ client }, response) => respond(response, client === 'plugin-user' ? 200 : 401, VERSION));
    const script = credential({ clientCertificateData: cert, clientKeyData: key });
    await call(api.access({ exec: plugin('certificate', script) }));
  });

  test.each([
    ['fails', 'echo "secret of the provider" >&2; exit 7', {}, 'failed with code 7. Run it by hand to see why.'],
    ['prints nothing', 'true', {}, 'printed no credential.'],
    ['prints another version', credential({ token: 't' }).replace('/v1"', '/v1beta1"'), {}, 'printed no credential.'],
    ['prints garbage', 'echo "{secret of the provider"', {}, 'printed no credential.'],
  ])('that %s is named without what it wrote', async (name, script, more, message) => {
    const error = await failureOf(call(api.access({ exec: plugin(name.replaceAll(' ', '_'), script, more) })));
    expect(error.reason).toBe('unauthorized');
    expect(error.message).toBe(`The credential plugin \`${name.replaceAll(' ', '_')}\` ${message}`);
    expect(JSON.stringify([error.stack, error.cause])).not.toContain('secret of');
  });

  test('that is not installed is named with the hint of the kubeconfig', async () => {
    const exec = { ...plugin('x', ''), command: 'no-such-plugin', installHint: 'Install it from example.com' };
    const error = await failureOf(call(api.access({ exec })));
    expect(error.reason).toBe('unsupported');
    expect(error.message).toBe(
      'The credential plugin `no-such-plugin` is not installed on this host. Install it from example.com.',
    );
  });
});

describe('certificates', () => {
  test('of a client are sent, from text or files', async () => {
    const { cert, key } = await api.authority.issue(['deployer']);
    writeFileSync(path.join(directory, 'client.crt'), cert);
    writeFileSync(path.join(directory, 'client.key'), key);
    api.answer((_, response) => respond(response, 200, VERSION));
    await call(api.access({ client: { certificate: { text: cert }, key: { text: key } } }));
    const file = (name: string) => ({ file: path.join(directory, name) });
    await call(api.access({ client: { certificate: file('client.crt'), key: file('client.key') } }));
    expect(api.requests.map(({ client }) => client)).toEqual(['deployer', 'deployer']);
  });

  test('of a server by an unknown authority are not trusted', async () => {
    api.answer((_, response) => respond(response, 200, VERSION));
    const error = await failureOf(call({ ...api.access(), authority: null }));
    expect(error.reason).toBe('unauthorized');
    expect(error.message).toMatch(/^The certificate of the cluster's API server cannot be trusted \([A-Z_]+\)\.$/);
    expect(api.requests).toEqual([]);
    await call({ ...api.access(), authority: null, verifiesServer: false });
  });

  test('of a server are checked by `tls-server-name`', async () => {
    api.answer((_, response) => respond(response, 200, VERSION));
    await call({ ...api.access(), serverName: 'kubernetes' });
    const error = await failureOf(call({ ...api.access(), serverName: 'elsewhere' }));
    expect(error.message).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
  });
});

test('a user to act as is in headers', async () => {
  api.answer((_, response) => respond(response, 200, VERSION));
  const impersonation = { 'Impersonate-User': 'deployer', 'Impersonate-Group': ['dev', 'ops'] };
  await call(api.access({ token: TOKEN, impersonation }));
  expect(api.requests[0]?.headers).toMatchObject({
    'impersonate-user': 'deployer',
    'impersonate-group': 'dev, ops',
  });
});

test('a server below a path is asked there', async () => {
  api.answer((_, response) => respond(response, 200, VERSION));
  await call({ ...api.access(), server: new URL(`${api.url}/k8s/clusters/c-1/`) });
  expect(api.requests[0]?.url.pathname).toBe('/k8s/clusters/c-1/version');
});
