// What must be healthy after an upgrade, as far as it was before.
import { readFileSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { Resolver } from 'node:dns/promises';
import { connect } from 'node:net';
import path from 'node:path';
import type { Config } from '../../core/config';
import { own } from '../../core/outbound/client';
import { dnsPortsOf } from '../../core/protocols/dns_ports';

interface HealthCheck {
  name: string;
  isHealthy(): Promise<boolean>;
}

const WITHIN_MS = 5_000;
const LAG_SECONDS_MAX = 60;
/** Of a large installation, so many applications speak for all. */
const APPLICATIONS_MAX = 20;

/** Names of the parts that are healthy now. @param only ask these alone */
export async function healthyParts(config: Config, only?: readonly string[]): Promise<string[]> {
  const checks = healthChecks(config).filter(({ name }) => only?.includes(name) ?? true);
  const found = await Promise.all(
    checks.map(async ({ name, isHealthy }) => ((await isHealthy().catch(() => false)) ? name : null)),
  );
  return found.filter((name) => name !== null);
}

/** Whether the API is ready to serve. */
export async function isReady(config: Config): Promise<boolean> {
  const answer = await ask(apiOf(config), '/readyz').catch(() => null);
  return answer?.status === 200;
}

/** Whether rows that are due are worked on, by whichever process does. */
async function isWorkedOff({ adminHost, adminPort }: Config): Promise<boolean> {
  const { host, port } = addressOf(adminHost, adminPort);
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/metrics`;
  const answer = await own(url, { within: { ms: WITHIN_MS, of: 'response' } });
  const lag = /^platform_worker_lag_seconds (\S+)$/m.exec(await answer.text())?.[1];
  return Number(lag) <= LAG_SECONDS_MAX;
}

function healthChecks(config: Config): HealthCheck[] {
  const api = apiOf(config);
  const answers =
    (at: Address, place: string, options: AskOptions = {}) =>
    async () =>
      (await ask(at, place, options)).status < 500;
  return [
    { name: 'database', isHealthy: () => isReady(config) },
    { name: 'background work', isHealthy: () => isWorkedOff(config) },
    { name: 'API', isHealthy: async () => (await ask(api, '/v2/me')).type.includes('problem+json') },
    { name: 'GraphQL', isHealthy: async () => (await ask(api, '/graphql', TYPENAME)).type.includes('json') },
    { name: 'dashboard', isHealthy: async () => (await ask(api, '/', HTML)).status === 200 },
    ...applicationChecks(config),
    ...portChecks(config),
    ...(config.s3Port === 0 || config.rgwUrl !== null
      ? []
      : [{ name: 'object storage', isHealthy: answers(addressOf(config.s3Listen[0], config.s3Port), '/') }]),
    ...(config.registryPort === 0
      ? []
      : [{ name: 'registry', isHealthy: answers(addressOf(config.registryListen, config.registryPort), '/v2/') }]),
    ...(config.dnsPort === 0 ? [] : [{ name: 'name server', isHealthy: () => nameServerAnswers(config) }]),
  ];
}

/** Host names of the routes that the ingress had last; those whose application answered are asked again. */
function applicationChecks({ runtimeDir, ingressListen, ingressPort, ingressTlsPort }: Config): HealthCheck[] {
  if (ingressPort === 0) return [];
  const at = addressOf(ingressListen, ingressPort);
  const checks: HealthCheck[] = [{ name: 'ingress', isHealthy: async () => (await ask(at, '/')).status > 0 }];
  if (ingressTlsPort)
    checks.push({ name: 'ingress with TLS', isHealthy: () => connects(addressOf(ingressListen, ingressTlsPort)) });
  const hosts = routedHosts(runtimeDir).slice(0, APPLICATIONS_MAX);
  return [
    ...checks,
    ...hosts.map((host) => ({
      name: `application ${host}`,
      isHealthy: async () => (await ask(at, '/', { headers: { host } })).status < 500,
    })),
  ];
}

function routedHosts(runtimeDir: string): string[] {
  try {
    const routes = JSON.parse(readFileSync(path.join(runtimeDir, 'routes.json'), 'utf8')) as {
      hosts: string[];
      targets: unknown[];
    }[];
    return routes
      .filter(({ targets }) => targets.length)
      .flatMap(({ hosts }) => hosts.filter((host) => !host.includes('*')).slice(0, 1));
  } catch {
    return [];
  }
}

function portChecks({ smtpPorts, smtpListen, mxPort }: Config): HealthCheck[] {
  const mail = smtpPorts.map(({ port }) => ({ name: `mail at port ${port}`, at: addressOf(smtpListen[0], port) }));
  if (mxPort !== 0) mail.push({ name: `mail at port ${mxPort}`, at: addressOf(smtpListen[0], mxPort) });
  return mail.map(({ name, at }) => ({ name, isHealthy: () => connects(at) }));
}

/** Any answer counts: which zones there are is another matter. */
async function nameServerAnswers({ dnsPort, dnsListen, dnsDomain }: Config): Promise<boolean> {
  const host = dnsListen[0] ?? '127.0.0.1';
  const tries = dnsPortsOf(dnsPort).map(async (port) => {
    const resolver = new Resolver({ timeout: 1_000, tries: 2 });
    resolver.setServers([`${host.includes(':') ? `[${host}]` : host}:${port}`]);
    const { code } = await resolver.resolveSoa(dnsDomain).then(
      () => ({ code: '' }),
      (error: NodeJS.ErrnoException) => error,
    );
    return !['ETIMEOUT', 'ECONNREFUSED', 'ECANCELLED'].includes(code ?? '');
  });
  return (await Promise.all(tries)).some(Boolean);
}

interface Address {
  host: string;
  port: number;
}

function apiOf({ host, port }: Config): Address {
  return addressOf(host, port);
}

/** Where a server can be asked that listens there. */
function addressOf(host: string | undefined, port: number): Address {
  if (host === undefined || host === '0.0.0.0') return { host: '127.0.0.1', port };
  return { host: host === '::' ? '::1' : host, port };
}

interface AskOptions {
  headers?: Record<string, string>;
  body?: string;
}

const HTML = { headers: { accept: 'text/html' } };
const TYPENAME = { headers: { 'content-type': 'application/json' }, body: '{"query":"{ __typename }"}' };

function ask(
  at: Address,
  place: string,
  { headers = {}, body }: AskOptions = {},
): Promise<{ status: number; type: string }> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST';
    // Not of the pool: a connection of before the restart says nothing of after it.
    const request = requestHttp(
      { ...at, path: place, method, headers, agent: false, timeout: WITHIN_MS },
      (response) => {
        const { statusCode: status = 0, headers: answered } = response;
        response.destroy();
        resolve({ status, type: String(answered['content-type'] ?? '') });
      },
    );
    request.on('error', reject).on('timeout', () => request.destroy(new Error('no answer')));
    request.end(body);
  });
}

function connects(at: Address): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ ...at, timeout: WITHIN_MS });
    const answer = (is: boolean) => () => (socket.destroy(), resolve(is));
    socket.on('connect', answer(true)).on('error', answer(false)).on('timeout', answer(false));
  });
}
