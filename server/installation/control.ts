// What operators of the installation do in the dashboard, done by the service itself.
import type { InstallationControl } from '../../core/catalog/installation_control';
import type { Platform } from '../platform/platform';
import { machineOf } from './machine';
import { setupsOf } from './setups';
import { upgradesOf } from './upgrades';

export function installationControl({ config }: Pick<Platform, 'config'>): InstallationControl {
  return { ...machineOf(config), ...upgradesOf(config), ...setupsOf(config) };
}
