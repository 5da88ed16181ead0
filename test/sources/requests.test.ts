// Who sends HTTP requests: the doors of core/outbound/client.ts, and what ARCHITECTURE names beside them.
import { readSource, repositoryFiles } from '../support/runner/repository';

const ROOMS = /^(core|contract|db|models|engines|drivers|jobs|resolvers|rest|server)\/.*\.ts$/;
/** With what the doors do not do. */
const OTHERS = [
  'drivers/image/repository.ts',
  'drivers/kubernetes/client/connection.ts',
  'engines/cdn/edge/origin.ts',
  'engines/ingress/http/http2.ts',
  'jobs/applications/instance/health.ts',
  'server/http/pass_on.ts',
  'server/upgrade/health.ts',
];
const SENDS = [
  /\bhttps?\.(?:request|get)\(|\bclient\.request\(/,
  /import \{[^}]*\brequest\b[^}]*\} from 'node:https?'/,
  /(?<![.\w])(?<!function )fetch\((?:url|address|new URL|['"`])/,
  /from '(?:undici|node:http2|axios|got)'/,
];

const files = repositoryFiles().filter((file) => ROOMS.test(file));

test('HTTP requests go through core/outbound, or are named in ARCHITECTURE', () => {
  const senders = files.filter((file) => SENDS.some((sends) => sends.test(readSource(file))));
  // A sample of code, which the platform only shows.
  const found = senders.filter((file) => !/^(core\/outbound\/|rest\/openapi\/code_samples)/.test(file));
  expect(found).toEqual(OTHERS);
  const page = readSource('docs/ARCHITECTURE.md');
  expect(OTHERS.filter((file) => !page.includes(`\`${file}\``))).toEqual([]);
});

test('addresses are judged by core/outbound alone', () => {
  const resolving = files.filter((file) => /from 'node:dns(?:\/promises)?'/.test(readSource(file)));
  // Which host a name leads to, for itself; no connection to a user's address is made with it.
  expect(
    resolving.filter((file) => /^drivers\/(?:source|image|monitor|notifier|git_provider|login)/.test(file)),
  ).toEqual([]);
});

// With a callback, connecting hands errors to it: sending then throws where nobody catches it, and the process ends.
test('sockets of datagrams are connected without a callback', () => {
  const sockets = files.filter((file) => readSource(file).includes("from 'node:dgram'"));
  expect(sockets.filter((file) => /\.connect\((?:[^()]|\([^()]*\))*=>/.test(readSource(file)))).toEqual([]);
});
