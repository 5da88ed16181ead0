/** @tier heavy @quarter 3 @covers drivers/network drivers/runtime */
// Projects on networks of their own, as root. As an ordinary user see test/server/isolated_applications.test.ts.
import { spawnSync } from 'node:child_process';
import { isolatedCases } from '../../support/deployments/isolated_cases';

const asRoot = process.getuid?.() === 0 ? describe : describe.skip;

asRoot('projects on networks of their own, as root', () => {
  isolatedCases('10.245.0.0/24');

  afterAll(() => {
    const { stdout } = spawnSync('ip', ['-o', 'addr'], { encoding: 'utf8' });
    expect(stdout).not.toContain('10.245.0.');
  });
});
