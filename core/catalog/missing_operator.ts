import { operatorCommand } from './setup_command';

/** The next step where no user is an operator of the installation, as after an upgrade that could not know who is. */
export function missingOperator(): string {
  return (
    'No user is an operator of this installation, so its pages in the dashboard are closed. To make somebody one: ' +
    `${operatorCommand()} user grant-operator --email <address>`
  );
}
