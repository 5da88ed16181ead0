// Ends this process with SIGKILL at the n-th continuation of a promise from `start` on. Behind every await is one.
const { createHook } = require('node:async_hooks');

/** @param killAt 0: the continuations are only counted */
function killSelfAt(killAt) {
  const promises = new Set();
  let continuations = 0;
  const hook = createHook({
    init(id, type) {
      if (type === 'PROMISE') promises.add(id);
    },
    before(id) {
      if (promises.has(id) && ++continuations === killAt) process.kill(process.pid, 'SIGKILL');
    },
  });
  return {
    start: () => void hook.enable(),
    /** @returns the number of continuations */
    stop() {
      hook.disable();
      return continuations;
    },
  };
}

module.exports = { killSelfAt };
