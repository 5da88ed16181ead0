// All workflows, with the resource in whose name a test gives orders for their steps.
const { steps: deployment } = require('../../../jobs/deployments/deployment/steps');
const { steps: run } = require('../../../jobs/runs/run/steps');

exports.workflows = {
  deployment: { steps: deployment, ownerOf: ({ application_id }) => application_id },
  run: { steps: run, ownerOf: ({ application_id }) => application_id },
};
