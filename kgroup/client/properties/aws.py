"""The options of MSK's login module."""

from collections.abc import Mapping

from kgroup.client.auth.credentials import AwsLogin


def aws_login(options: Mapping[str, str]) -> AwsLogin:
    """Return our AWS identity, from IAMLoginModule's options."""
    return AwsLogin(
        profile=options.get("awsProfileName"),
        role_arn=options.get("awsRoleArn"),
        role_session=options.get("awsRoleSessionName"),
        external_id=options.get("awsRoleExternalId"),
        sts_region=options.get("awsStsRegion"),
    )
