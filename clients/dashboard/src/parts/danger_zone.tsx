import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Confirm } from './dialog';
import { Section } from './page';
import { reversalText } from './reversal';

interface DangerZoneProps {
  /** Such as "bucket". */
  kind: string;
  name: string;
  projectId: string;
  /** What becomes of what belongs to it. */
  consequence: string;
  /** Said once more beside the name that is to be typed. */
  warning?: string;
  isProtected?: boolean;
  remove(): Promise<void>;
  /** How it is restored from the bin, where it is kept there. */
  findUndo(): Promise<(() => Promise<unknown>) | undefined>;
  /** What else is dangerous. */
  children?: ComponentChildren;
}

/** The end of the page of a kind that has a bin: its resource is deleted, by whoever types its name. */
export function DangerZone({
  kind,
  name,
  projectId,
  consequence,
  warning,
  isProtected,
  remove,
  findUndo,
  children,
}: DangerZoneProps) {
  const [asks, setAsks] = useState(false);
  return (
    <Section title="Danger zone">
      {children}
      <div class="danger-zone">
        <p>
          <strong>Delete the {kind}.</strong> {consequence}
        </p>
        <button type="button" class="danger" disabled={isProtected} onClick={() => setAsks(true)}>
          Delete the {kind}
        </button>
      </div>
      {asks && (
        <Confirm
          title={`Delete ${name}?`}
          verb={`Delete the ${kind}`}
          typed={name}
          work={remove}
          done={`The ${kind} ${name} was deleted.`}
          findUndo={findUndo}
          onClose={() => setAsks(false)}
        >
          {warning} {reversalText('bin', projectId, kind)}
        </Confirm>
      )}
    </Section>
  );
}
