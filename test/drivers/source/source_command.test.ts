// One git process, as drivers/source/command.ts waits for it.
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../../core/driver';
import { git } from '../../../drivers/source/command';

it('hears the end of a git that is quicker than what is done at its start', async () => {
  const version = await git(['--version'], { onStart: () => sleep(500) }, driverContext(5_000));
  expect(version).toMatch(/^git version/);
  await expect(git(['no-such-command'], { onStart: () => sleep(500) }, driverContext(5_000))).rejects.toMatchObject({
    reason: 'code',
  });
});
