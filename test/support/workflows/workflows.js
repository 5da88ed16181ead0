// All workflows, with the resource in whose name a test gives orders for their steps.
const { databaseSteps } = require('../../../jobs/databases/database/steps');
const { steps: deployment } = require('../../../jobs/deployments/deployment/steps');
const { steps: run } = require('../../../jobs/runs/run/steps');

exports.workflows = {
  deployment: { steps: deployment, ownerOf: ({ application_id }) => application_id },
  run: { steps: run, ownerOf: ({ application_id }) => application_id },
  // A copy has no id before it is asked for. Its server is looked at again some time after it was made.
  database: {
    steps: new Set(Object.values(databaseSteps).flat()),
    ownerOf: ({ name }) => name,
    isOver: ({ kind }) => kind === 'settled',
  },
};
