// A source whose start script is for development, from the request to the response: what was built is served, and its
// owner is told.
import { startDeployService, type DeployService } from '../support/deployments/deploy';

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService();
}, 60_000);
afterAll(() => service?.close(), 60_000);

const WITHIN_MS = 120_000;
const BUILD = `
const { mkdirSync, writeFileSync } = require('node:fs');
mkdirSync('build');
writeFileSync('build/index.html', '<p>built</p>');
`;
const site = (scripts: object): Record<string, string> => ({
  'package.json': JSON.stringify({ scripts: { build: 'node make.js', start: 'react-scripts start', ...scripts } }),
  'make.js': BUILD,
  'public/index.html': '<p>not built</p>',
});

test(
  'the site that the build script leaves is served in the place of a server for development',
  async () => {
    const application = await service.application(site({}));
    const ended = await application.ended((await application.ask()).id, WITHIN_MS);
    expect(ended).toMatchObject({
      status: 'active',
      status_reason: expect.stringMatching(/calls `react-scripts start`, a server for development, so what the build/),
    });
    expect(await application.visit()).toEqual({ status: 200, body: '<p>built</p>' });
    expect((await application.log(ended.id)).join('\n')).toMatch(/a server for development/);
  },
  WITHIN_MS,
);

test(
  'a script for production, and a Procfile, are what starts',
  async () => {
    const server = `require('node:http').createServer((_, response) => response.end('own')).listen(process.env.PORT)`;
    const production = { ...site({ 'start:prod': 'node serve.js' }), 'serve.js': server };
    const procfile = { ...site({}), 'serve.js': server, Procfile: 'web: node serve.js\n' };
    for (const source of [production, procfile]) {
      const application = await service.application(source);
      expect((await application.ended((await application.ask()).id, WITHIN_MS)).status).toBe('active');
      expect((await application.visit()).body).toBe('own');
    }
  },
  WITHIN_MS * 2,
);
