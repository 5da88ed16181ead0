// Files of a repository whose names are not UTF-8 go through a deployment like others, to its removal.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { startDeployService, type DeployService } from '../../support/deployments/deploy';
import { nodeApp, staticSite } from '../../support/git/repositories';

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService();
}, 60_000);
afterAll(() => service?.close(), 60_000);

const latin = { '"caf\\351/men\\374.txt"': 'black', '"\\351t\\351.txt"': 'hot' };

test.each([
  ['a site', staticSite('one'), '<p>one</p>'],
  ['a program', nodeApp('one'), 'one'],
])(
  '%s with names in Latin-1 is deployed, again, and removed',
  async (_name, files, body) => {
    const application = await service.application({ ...files, ...latin });
    for (let times = 0; times < 2; times += 1) {
      const ended = await application.ended((await application.ask()).id, 60_000);
      expect([ended.status, ended.status_reason]).toEqual(['active', null]);
      expect((await application.visit()).body).toBe(body);
    }
    await service.clear();
    expect(readdirSync(path.join(service.runtimeDir, 'releases'))).toEqual([]);
  },
  180_000,
);
