// Kubeconfigs of tools and providers: what is understood, and what is refused in words that help.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DriverError } from '../../../core/driver';
import { parseKubeconfigs } from '../../../drivers/kubernetes/client/kubeconfig';
import { inClusterAccess, loadKubeconfig } from '../../../drivers/kubernetes/client/load_access';
import { kubeconfigOf, REFUSED, SUPPORTED } from '../../support/kubernetes/kubeconfig_samples';

const parse = (text: string, context?: string) => parseKubeconfigs([{ file: '/etc/shop/.kube/config', text }], context);

function failure(work: () => unknown): DriverError {
  try {
    work();
  } catch (error) {
    return error as DriverError;
  }
  throw new Error('it was taken');
}

describe('a kubeconfig', () => {
  test.each(Object.entries(SUPPORTED))('of %s is understood', (_, sample) => {
    const access = parse(kubeconfigOf(sample));
    expect(access.server.href.replace(/\/$/, '')).toBe((sample.server ?? 'https://10.0.0.1:6443').replace(/:443$/, ''));
    expect(access.namespace).toBe('default');
    const { client, token, tokenFile, exec } = access.user;
    expect([client, token, tokenFile, exec].filter((one) => one !== null)).toHaveLength(1);
  });

  test.each(Object.entries(REFUSED))('with %s is refused', (_, sample) => {
    const error = failure(() => parse(kubeconfigOf(sample)));
    expect(error).toBeInstanceOf(DriverError);
    expect(['invalid', 'unsupported']).toContain(error.reason);
    expect(error.message).toMatch(sample.because);
    // Neither credentials nor paths of the host.
    expect(error.message).not.toMatch(/made-up|\/etc|\/usr/);
  });

  test('takes paths from its own folder, and a command without a path from PATH', () => {
    const { client } = parse(kubeconfigOf(SUPPORTED.minikube!)).user;
    expect(client?.key).toEqual({ file: '/etc/shop/.kube/profiles/minikube/client.key' });
    expect(parse(kubeconfigOf(SUPPORTED['a service account']!)).user.tokenFile).toBe('/etc/shop/.kube/tokens/deployer');
    expect(parse(kubeconfigOf(SUPPORTED.EKS!)).user.exec).toMatchObject({ command: 'aws', env: {} });
    const local = kubeconfigOf({
      user: ['exec:', '  apiVersion: client.authentication.k8s.io/v1', '  command: ./login'],
    });
    expect(parse(local).user.exec?.command).toBe('/etc/shop/.kube/login');
  });

  test('has a plugin with its arguments, variables and hint', () => {
    expect(parse(kubeconfigOf(SUPPORTED['EKS with a profile']!)).user.exec).toEqual({
      ...{
        apiVersion: 'client.authentication.k8s.io/v1',
        command: 'aws-iam-authenticator',
        args: ['token', '-i', '7'],
      },
      ...{ env: { AWS_PROFILE: 'shop' }, providesClusterInfo: false, installHint: null },
    });
    expect(parse(kubeconfigOf(SUPPORTED.GKE!)).user.exec).toMatchObject({ args: [], providesClusterInfo: true });
  });

  test('acts as the user that it names', () => {
    const user = ['token: t', 'as: deployer', 'as-uid: "7"', 'as-groups: [dev, ops]'];
    expect(parse(kubeconfigOf({ user })).user.impersonation).toEqual({
      ...{ 'Impersonate-User': 'deployer', 'Impersonate-Uid': '7', 'Impersonate-Group': ['dev', 'ops'] },
    });
  });

  test('may have several contexts, of which one is chosen', () => {
    const other = kubeconfigOf({ user: ['token: t'] }).replace(
      'contexts:\n',
      'contexts:\n- name: other\n  context: {cluster: shop, user: admin, namespace: staging}\n',
    );
    expect(parse(other).namespace).toBe('default');
    expect(parse(other, 'other').namespace).toBe('staging');
    expect(failure(() => parse(other, 'third')).message).toBe('The kubeconfig has no context `third`.');
  });

  test.each([
    ['', 'The kubeconfig has no fields.'],
    ['clusters: [', 'The kubeconfig is not valid YAML.'],
    ['users: [{name: a, user: {token: "made-up}]', 'The kubeconfig is not valid YAML.'],
    ['kind: Pod', 'The kubeconfig is of another kind than `Config`.'],
    ['clusters: shop', 'The kubeconfig has `clusters` that are not a list.'],
    ['{}', 'The kubeconfig has no `current-context`, and none was chosen.'],
    ['current-context: a', 'The kubeconfig has no context `a`.'],
    [
      '{current-context: a, contexts: [{name: a, context: {}}]}',
      'The kubeconfig has no `cluster` for the context `a`.',
    ],
    [
      '{current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {}}]}',
      'The kubeconfig has no user `u`.',
    ],
  ])('%j is refused', (text, message) => {
    expect(failure(() => parse(text)).message).toBe(message);
  });
});

describe('files', () => {
  let directory: string;
  const write = (name: string, text: string): string => {
    writeFileSync(path.join(directory, name), text);
    return path.join(directory, name);
  };
  beforeAll(() => (directory = mkdtempSync(path.join(tmpdir(), 'kubeconfig-'))));
  afterAll(() => rmSync(directory, { recursive: true }));

  test('several are read as one, and the first that names a thing wins', async () => {
    const first = write('first', 'current-context: b\nusers: [{name: admin, user: {token: first}}]');
    const second = write(
      'second',
      kubeconfigOf({ user: ['token: second'] }).replace('  name: shop\ncurrent', '  name: b\ncurrent'),
    );
    const access = await loadKubeconfig(`${first}:${second}`);
    expect(access.user.token).toBe('first');
    expect(access.server.href).toBe('https://10.0.0.1:6443/');
  });

  test('one that is missing or too large is refused without its path', async () => {
    await expect(loadKubeconfig(path.join(directory, 'none'))).rejects.toThrow(
      'The kubeconfig cannot be read (ENOENT).',
    );
    const large = write('large', `# ${'x'.repeat(1024 * 1024)}`);
    await expect(loadKubeconfig(large)).rejects.toThrow('The kubeconfig is larger than 1 MiB.');
  });
});

describe('inside of a pod', () => {
  test('access is that of the service account', () => {
    const access = inClusterAccess({ KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '6443' });
    expect(access?.server.href).toBe('https://10.96.0.1:6443/');
    expect(access?.authority).toEqual({ file: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt' });
    expect(access?.user.tokenFile).toBe('/var/run/secrets/kubernetes.io/serviceaccount/token');
    expect(inClusterAccess({ KUBERNETES_SERVICE_HOST: 'fd00::1' })?.server.href).toBe('https://[fd00::1]/');
  });

  test('elsewhere there is none', () => {
    expect(inClusterAccess({})).toBeNull();
  });
});
