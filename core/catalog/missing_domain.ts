// Whether the installation has a domain of its own, by `platform setup` or by settings of the operator.
import type { Config } from '../config';
import { operatorCommand } from './setup_command';

/** The next step of an operator whose installation is reached by its address alone; null where it has a domain. */
export function missingDomain({ baseUrl, appsDomain }: Pick<Config, 'baseUrl' | 'appsDomain'>): string | null {
  if (baseUrl.startsWith('https:') || appsDomain !== 'localhost') return null;
  return (
    'No domain yet: the dashboard is reached by its address, without encryption, and applications from this machine ' +
    `alone. Next: ${operatorCommand()} setup --domain example.com`
  );
}
