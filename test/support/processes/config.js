// Loaded into a program of a test before its entry: values of `withConfig`, in place of those that no operator sets.
const { fixedValues } = require('../../../core/settings/fixed');

Object.assign(fixedValues, JSON.parse(process.env.TEST_CONFIG ?? '{}'));
if (process.env.STEP_ORDERS) require('../workflows/ordered_steps');
