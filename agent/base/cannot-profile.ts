/** The agent cannot run here, or not as it was asked to; the message is a sentence for people. */
export class CannotProfile extends Error {
  override readonly name = 'CannotProfile';
}
