/** @tier heavy @quarter 1 @covers jobs/deployments drivers/builder drivers/runtime */
// What the reason of a failed deployment tells its owner: the command, how it ended, and what it printed last.
import { GIVEN_UP_SOON, startDeployService, type DeployService } from '../support/deployments/deploy';
import type { GitFiles } from '../support/git/git_server';
import { procfileApp, webCommand } from '../support/git/repositories';

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService({ BUILD_CONCURRENCY: '4' });
}, 60_000);
afterAll(() => service?.close(), 60_000);

interface Failing {
  files: GitFiles;
  build_command?: string;
  settings?: object;
  env?: Record<string, string>;
}

const KEY = 'sk_live_0123456789';
const lock = (name: string): string =>
  JSON.stringify({ name, version: '1.0.0', lockfileVersion: 3, packages: { '': { name, version: '1.0.0' } } });
const nodeSource = (build: string, more: object = {}): GitFiles => ({
  'package.json': JSON.stringify({ name: 'x', version: '1.0.0', scripts: { build, start: 'node x.js' }, ...more }),
  'package-lock.json': lock('x'),
  'x.js': '',
});
const custom = (build_command: string, env = {}): Failing => ({ files: webCommand('true'), build_command, env });

async function reasonOf({ files, build_command, settings = {}, env = {} }: Failing): Promise<string> {
  const build = build_command === undefined ? {} : { build: { build_command } };
  const application = await service.application(files, { ...GIVEN_UP_SOON, ...build, ...settings });
  for (const [key, value] of Object.entries(env))
    await service.call('PUT', `/v2/applications/${application.id}/env/${key}`, { body: { value } });
  const { status, status_reason } = await application.deploy();
  expect(status).toBe('failed');
  return status_reason;
}

const reasonsOf = (all: Failing[]): Promise<string[]> => Promise.all(all.map(reasonOf));

test('of a build: its step or its command, with the error that it printed', async () => {
  const reasons = await reasonsOf([
    { files: { ...nodeSource('node build.js'), 'build.js': "console.log('building'); require('vite')" } },
    { files: { ...nodeSource('true', { dependencies: { a: 'file:a' } }), 'a/package.json': '{"name": "a"}' } },
    { files: nodeSource('exit 7') },
    custom('echo "reading"; echo "Error: $API_KEY is no key" >&2; exit 3', { API_KEY: KEY }),
    custom(`printf '\\033[31mError:\\033[0m \\007red\\n'; exit 1`),
    custom('kill -9 $$'),
  ]);
  expect(reasons).toEqual([
    "The build step `npm run build` ended with exit code 1: Error: Cannot find module 'vite'.",
    expect.stringMatching(
      /^The build step `npm ci` ended with exit code 1: `npm ci` can only install .*Missing: a@.* from lock/,
    ),
    'The build step `npm run build` ended with exit code 7 and printed nothing that says why.',
    'The build command `echo "reading"; echo "Error: $API_KEY is no key" >&2; exit 3` ended with exit code 3: ' +
      'Error: *** is no key.',
    "The build command `printf '\\033[31mError:\\033[0m \\007red\\n'; exit 1` ended with exit code 1: Error: red.",
    'The build command `kill -9 $$` was ended by signal 9 (SIGKILL) and printed nothing that says why.',
  ]);
}, 90_000);

test('of a release command, and of a program that ends or does not answer', async () => {
  const server = (text: string): GitFiles => webCommand('node server.js', { 'server.js': text });
  const answering = (text: string): GitFiles =>
    server(`require('http').createServer((request, response) => { ${text} }).listen(process.env.PORT);`);
  const broken = procfileApp('v1', 'node migrate.js');
  const [release, ...starts] = await reasonsOf([
    {
      files: { ...broken, 'migrate.js': `throw new Error('no table of ' + process.env.API_KEY)` },
      env: { API_KEY: KEY },
    },
    { files: server(`console.log('starting'); require('express');`) },
    { files: server(`console.log('all is done')`) },
    {
      files: server(`console.log('waiting for the database'); setInterval(() => {}, 1000);
      process.on('SIGTERM', () => { console.log('good night'); process.exit(0); });`),
    },
    {
      files: answering(`console.error('Error: no page for ' + process.env.API_KEY); response.writeHead(500).end();`),
      env: { API_KEY: KEY },
      settings: { health_check: { ...GIVEN_UP_SOON.health_check, type: 'http', path: '/' } },
    },
  ]);
  expect(release).toBe('The release command `node migrate.js` ended with exit code 1: Error: no table of ***.');
  const web = 'The new version does not stay up. Process type web: ';
  expect(starts).toEqual([
    `${web}The app exited with code 1 right after its start: Error: Cannot find module 'express'.`,
    `${web}The app exited with code 0 right after its start. Its command must run until it is stopped. Its last ` +
      'output: all is done.',
    expect.stringMatching(/^[^]*The app did not listen on PORT [^]* Its last output: waiting for the database\.$/),
    expect.stringMatching(/it answered GET \/ with status 500\. Its last output: Error: no page for \*\*\*\.$/),
  ]);
}, 90_000);

test('of a script with the line ends of Windows, wherever it runs', async () => {
  const script = (lines: string[]) => ({ mode: '100755', content: `${lines.join('\r\n')}\r\n` }) as const;
  const start = script(['#!/usr/bin/env node', 'console.log(1)']);
  const run = script(['#!/bin/bash', 'echo 1']);
  const web = webCommand('./bin/start');
  const [build, release, ...starts] = await reasonsOf([
    { files: { ...webCommand('true'), 'build.sh': run }, build_command: './build.sh' },
    { files: { ...webCommand('sleep 60'), 'migrate.sh': run }, settings: { run: { release_command: './migrate.sh' } } },
    { files: { ...web, 'bin/start': start } },
    { files: { ...web, 'bin/start': run } },
    { files: { ...webCommand('bash start.sh'), 'start.sh': script(['#!/bin/bash', 'set -e', 'exit 1']) } },
  ]);
  const advice = 'Save it with LF, and add `* text=auto eol=lf` to .gitattributes.';
  const blames = (name: string): string =>
    ` \`${name}\` has the line ends of Windows (CR LF), so its interpreter is not found. ${advice}`;
  expect(build?.endsWith(blames('./build.sh'))).toBe(true);
  expect(release).toContain(blames('./migrate.sh'));
  expect(starts.map((reason) => /Windows \(CR LF\)/.test(reason))).toEqual([true, true, true]);
  expect([starts[0], starts[1]].every((reason) => reason?.includes(blames('./bin/start')))).toBe(true);
}, 120_000);
