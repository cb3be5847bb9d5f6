"""Versions of requests that Kafka 2.3 did not serve; written by `make kafka-since`."""

SINCE: dict[int, dict[int, str]] = {
    0: {8: "2.4", 9: "2.8", 10: "3.7", 11: "3.8", 12: "4.0", 13: "4.1"},  # Produce
    1: {12: "2.7", 13: "3.1", 14: "3.5", 15: "3.5", 16: "3.7", 17: "3.9", 18: "4.1"},  # Fetch
    2: {6: "2.8", 7: "3.0", 8: "3.5", 9: "3.9", 10: "4.0", 11: "4.2"},  # ListOffsets
    3: {9: "2.4", 10: "2.8", 11: "2.8", 12: "3.1", 13: "4.0"},  # Metadata
    8: {8: "2.4", 9: "3.7", 10: "4.2"},  # OffsetCommit
    9: {6: "2.4", 7: "2.5", 8: "3.0", 9: "3.7", 10: "4.2"},  # OffsetFetch
    10: {3: "2.4", 4: "3.0", 5: "3.8", 6: "3.9"},  # FindCoordinator
    11: {6: "2.4", 7: "2.5", 8: "3.2", 9: "3.2"},  # JoinGroup
    12: {4: "2.4"},  # Heartbeat
    13: {3: "2.4", 4: "2.4", 5: "3.2"},  # LeaveGroup
    14: {4: "2.4", 5: "2.5"},  # SyncGroup
    15: {4: "2.4", 5: "2.4", 6: "4.0"},  # DescribeGroups
    16: {3: "2.4", 4: "2.6", 5: "3.8"},  # ListGroups
    18: {3: "2.4", 4: "3.9", 5: "4.4"},  # ApiVersions
    19: {4: "2.4", 5: "2.4", 6: "2.7", 7: "2.8"},  # CreateTopics
    20: {4: "2.4", 5: "2.7", 6: "2.8"},  # DeleteTopics
    21: {2: "2.6"},  # DeleteRecords
    22: {2: "2.4", 3: "2.5", 4: "2.7", 5: "3.8"},  # InitProducerId
    23: {4: "2.8"},  # OffsetForLeaderEpoch
    24: {2: "2.7", 3: "2.8", 4: "3.6", 5: "3.8"},  # AddPartitionsToTxn
    25: {2: "2.7", 3: "2.8", 4: "3.8"},  # AddOffsetsToTxn
    26: {2: "2.7", 3: "2.8", 4: "3.8", 5: "4.0"},  # EndTxn
    27: {1: "2.8", 2: "4.2"},  # WriteTxnMarkers
    28: {3: "2.5", 4: "3.8", 5: "4.0", 6: "4.4"},  # TxnOffsetCommit
    29: {2: "2.5", 3: "3.3"},  # DescribeAcls
    30: {2: "2.5", 3: "3.3"},  # CreateAcls
    31: {2: "2.5", 3: "3.3"},  # DeleteAcls
    32: {3: "2.6", 4: "2.8"},  # DescribeConfigs
    33: {2: "2.8"},  # AlterConfigs
    36: {2: "2.5"},  # SaslAuthenticate
    37: {2: "2.5", 3: "2.7"},  # CreatePartitions
    42: {2: "2.4", 3: "4.4"},  # DeleteGroups
    43: {1: "2.4", 2: "2.4"},  # ElectLeaders
    44: {1: "2.4"},  # IncrementalAlterConfigs
    47: {0: "2.4"},  # OffsetDelete
    48: {0: "2.6", 1: "2.8"},  # DescribeClientQuotas
    50: {0: "2.7"},  # DescribeUserScramCredentials
    51: {0: "2.7"},  # AlterUserScramCredentials
    57: {0: "2.7", 1: "3.3", 2: "4.0"},  # UpdateFeatures
    60: {0: "2.8", 1: "3.7", 2: "4.0"},  # DescribeCluster
    61: {0: "2.8"},  # DescribeProducers
    65: {0: "3.0"},  # DescribeTransactions
    66: {0: "3.0", 1: "3.8", 2: "4.1"},  # ListTransactions
    68: {0: "3.7", 1: "4.0"},  # ConsumerGroupHeartbeat
    69: {0: "3.8", 1: "4.0"},  # ConsumerGroupDescribe
    71: {0: "3.7"},  # GetTelemetrySubscriptions
    72: {0: "3.7"},  # PushTelemetry
    74: {0: "3.7", 1: "4.1"},  # ListConfigResources
    75: {0: "3.8"},  # DescribeTopicPartitions
    76: {1: "4.1"},  # ShareGroupHeartbeat
    77: {1: "4.1"},  # ShareGroupDescribe
    78: {1: "4.1", 2: "4.2"},  # ShareFetch
    79: {1: "4.1", 2: "4.2"},  # ShareAcknowledge
    83: {0: "4.1"},  # InitializeShareGroupState
    84: {0: "4.1"},  # ReadShareGroupState
    85: {0: "4.1", 1: "4.2"},  # WriteShareGroupState
    86: {0: "4.1"},  # DeleteShareGroupState
    87: {0: "4.1", 1: "4.2"},  # ReadShareGroupStateSummary
    88: {0: "4.2", 1: "4.4"},  # StreamsGroupHeartbeat
    89: {0: "4.2", 1: "4.4"},  # StreamsGroupDescribe
    90: {0: "4.1", 1: "4.2"},  # DescribeShareGroupOffsets
    91: {0: "4.1"},  # AlterShareGroupOffsets
    92: {0: "4.1"},  # DeleteShareGroupOffsets
    93: {0: "4.4"},  # StreamsGroupTopologyDescriptionUpdate
}
"""API key → version → the release that first served it; versions of 2.3 are left out."""

GAPS: dict[int, list[str]] = {
    50: ["3.3", "3.4"],  # DescribeUserScramCredentials
    51: ["3.3", "3.4"],  # AlterUserScramCredentials
}
"""API key → releases without it, though one before them has it: what brokers of KRaft got later."""
