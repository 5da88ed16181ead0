// Required by a program of a test: what happens at a step of a workflow, for rows of an owner. Each file of STEP_ORDERS
// is named after the owner and says it: { workflow, step, act, afterMs }. It is renamed to *.met right before.
const fs = require('node:fs');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { DriverError } = require('../../../core/driver');
const { workflows } = require('./workflows');

const { STEP_ORDERS } = process.env;
const isOverForNow = ({ kind, nextMs }) => kind === 'settled' && !nextMs;

for (const [workflow, { steps, ownerOf, isOver = isOverForNow }] of Object.entries(workflows))
  for (const step of steps) {
    const { run } = step;
    step.run = async (row, ctx) => {
      const file = path.join(STEP_ORDERS, `${ownerOf(row)}.json`);
      const order = read(file);
      if (order?.workflow !== workflow || order.step !== step.name) return run(row, ctx);
      const met = () => fs.renameSync(file, file.replace('.json', '.met'));
      const kill = () => {
        met();
        process.kill(process.pid, 'SIGKILL');
      };
      if (order.act === 'kill_within') setTimeout(kill, order.afterMs);
      if (order.act === 'fail') {
        met();
        throw new DriverError('invalid', 'The test broke it.');
      }
      if (order.act === 'wait') {
        met();
        await sleep(order.afterMs ?? 600_000, undefined, { signal: ctx.signal });
        return run(row, ctx);
      }
      const outcome = await run(row, ctx);
      if (outcome === 'done' || isOver(outcome) || step.isDone({ ...row, ...outcome.columns }, ctx)) kill();
      return outcome;
    };
  }

function read(file) {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}
