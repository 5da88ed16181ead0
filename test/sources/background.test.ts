// Repeated work is in the register of core/process/background.ts.
import { readSource, repositoryFiles } from '../support/runner/repository';

const SERVER_SIDE = /^(core|contract|db|models|engines|drivers|jobs|resolvers|rest|server)\/.*\.ts$/;
/** Timers that end with one connection, request, stop or process of their own. */
const OTHERS = [
  ...['core/process/background.ts', 'core/process/close_servers.ts', 'drivers/kubernetes/client/pod_stream.ts'],
  // The ingress is a process without an admin port; the control plane is told what it does.
  ...['engines/ingress/http/http.ts', 'engines/ingress/process/program.ts', 'engines/ingress/tls_contexts.ts'],
  // Each ends with its copy or import.
  'jobs/databases/database/lifecycle.ts',
  'jobs/databases/database_import.ts',
  // It measures how late itself is.
  'jobs/observers/check_loop.ts',
  ...['jobs/workflow.ts', 'rest/event_stream.ts', 'server/backup/restic.ts'],
  ...['server/http/drain.ts', 'server/http/source_uploads.ts'],
  ...['server/runs/entered.ts', 'server/runs/session.ts', 'server/web_processes/processes.ts'],
];

const files = repositoryFiles().filter((file) => SERVER_SIDE.test(file));

test('nobody else sets an interval', () => {
  expect(files.filter((file) => /\bsetInterval\(/.test(readSource(file)))).toEqual(OTHERS);
});

test('each work has a name of its own', () => {
  const names = files.flatMap((file) =>
    [...readSource(file).matchAll(/(?:repeatWork|openUseRecorder)\(\{\s*name: '([^']*)'/g)].map(([, name]) => name),
  );
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name, at) => names.indexOf(name) !== at || !/^[a-z]+(_[a-z]+)*$/.test(name ?? ''))).toEqual([]);
});
