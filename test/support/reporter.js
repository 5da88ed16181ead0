// The last lines of a test run, for people and for plain rules: what was not run, and "N passed, N failed, N skipped".
const { writeSync } = require('node:fs');

module.exports = function closingReporter() {
  // Jest puts its own summary after all reporters, so these lines wait for the end of the process. By then a forced
  // exit has closed the streams of Node, so they go to the descriptor.
  const write = (results) => process.once('exit', () => writeSync(1, closingLines(results).join('\n')));
  return { onRunComplete: (_, results) => void write(results) };
};

function closingLines(results) {
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, numRuntimeErrorTestSuites } = results;
  // A file that could not be loaded has no tests to count, so it counts as one that failed.
  const counts = [`${numPassedTests} passed`, `${numFailedTests + numRuntimeErrorTestSuites} failed`];
  const skipped = numPendingTests + numTodoTests;
  if (skipped) counts.push(`${skipped} skipped`);
  return ['', ...skippedIn(results), counts.join(', '), ''];
}

function skippedIn({ testResults }) {
  const all = testResults.flatMap(({ testResults: tests }) => tests);
  return all
    .filter(({ status }) => status === 'pending' || status === 'todo')
    .map(({ fullName }) => `skipped: ${fullName}`);
}
