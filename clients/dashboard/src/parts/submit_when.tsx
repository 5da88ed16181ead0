import type { ComponentChildren } from 'preact';
import { Submit } from './form';

interface SubmitWhenProps {
  /** Whether there is something to send. */
  isReady: boolean;
  action: { isRunning: boolean };
  children: ComponentChildren;
}

/** As Submit, and out of reach until what no field demands is there, such as a folder. */
export function SubmitWhen({ isReady, action, children }: SubmitWhenProps) {
  if (isReady) return <Submit action={action}>{children}</Submit>;
  return (
    <button type="submit" disabled>
      {children}
    </button>
  );
}
