// The router alone: prints how long it takes to find one of all operations by method and path.
import { mintId } from '../../core/ids';
import { buildCore } from '../../resolvers';
import { buildRouter } from '../../rest/router';

const TIMES = 5_000;

const { operations } = buildCore().table;
const router = buildRouter(operations);
const targets = operations.map(({ method, path }) => ({ method, path: path.replace(/\{\w+\}/g, () => mintId('app')) }));
let nanoseconds = Infinity;
for (let round = 0; round < 5; round += 1) {
  const started = process.hrtime.bigint();
  for (let time = 0; time < TIMES; time += 1) for (const { method, path } of targets) router.match(method, path);
  nanoseconds = Math.min(nanoseconds, Number(process.hrtime.bigint() - started) / (TIMES * targets.length));
}
process.stdout.write(JSON.stringify({ nanoseconds, routes: targets.length }));
